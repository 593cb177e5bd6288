// Turns of every conversation, and background jobs.

import { get, post } from '../api.js'
import { milliseconds, number, t, word } from '../i18n.js'
import { Button, Chip, html, Loaded, More, Page, Select, Tabs, usePages, useState, When } from '../ui.js'
import { useRefresh } from './parts.js'
import { Why } from '../chat/why.js'

export const screen = 'jobs'
const TURN_STATUSES = ['', 'waiting', 'running', 'paused', 'completed', 'partial', 'failed', 'cancelled']
const UNDER_WAY = new Set(['waiting', 'running'])
const STATUSES = ['', 'waiting', 'running', 'succeeded', 'failed', 'cancelled']

export function Screen({ service, user, may }) {
  const [tab, setTab] = useState('turns')
  return html`<${Page} title=${t('nav.jobs')} lead=${t('jobs.lead')}>
    <${Tabs} value=${tab} onChange=${setTab} options=${['turns', 'jobs'].map((each) => [each, t(`jobs.${each}`)])} />
    ${tab === 'turns' ? html`<${Turns} service=${service} user=${user} may=${may} />` : html`<${Jobs} />`}
  <//>`
}

function Turns({ service, user, may }) {
  const [status, setStatus] = useState('')
  const [whose, setWhose] = useState('user')
  const list = usePages((after) => get('/api/v1/turns', { user_id: whose === 'user' ? user : undefined, status, after, limit: 50 }), [user, whose, status])
  const [why, setWhy] = useState(null)
  useRefresh(list.reload, list.items?.length <= 50 && list.items.some((turn) => UNDER_WAY.has(turn.status)))
  const cancel = (turn) => post(`/api/v1/turns/${turn.id}/cancel`).then(list.reload)
  return html`<div class="filters">
      <${Select} aria-label=${t('jobs.status')} value=${status} onChange=${setStatus} options=${TURN_STATUSES.map((each) => [each, each ? word('status', each) : t('jobs.every')])} />
      ${!service.user_id && html`<${Select} aria-label=${t('user')} value=${whose} onChange=${setWhose} options=${[['user', t('jobs.of_user', { name: user })], ['all', t('jobs.everyone')]]} />`}
    </div>
    <${Loaded} of=${list} empty=${t('jobs.no_turns')}>
      <div class="scroll-x" tabindex="0"><table><thead><tr><th>${t('jobs.status')}</th><th>${t('conversation')}</th>${whose === 'all' && html`<th>${t('user')}</th>`}<th>${t('jobs.at')}</th><th class="num">${t('jobs.first_token')}</th><th class="num">${t('jobs.total')}</th><th class="num">${t('jobs.tokens')}</th><th>${t('why.route')}</th><th><span class="unseen">${t('actions')}</span></th></tr></thead><tbody>
        ${list.items?.map((turn) => html`<tr key=${turn.id}><td><span class=${`state ${turn.status}`}>${word('status', turn.status)}</span>${turn.error && html`<br /><small class="bad">${word('failure', turn.error.code)}</small>`}${turn.degraded.map((name) => html` <${Chip} kind="note">${word('degraded', name)}<//>`)}</td><td class="title"><a href=${`#/chat/${turn.conversation_id}`} dir="auto">${turn.title || t('untitled')}</a></td>${whose === 'all' && html`<td>${turn.user_id}</td>`}<td><${When} at=${turn.accepted_at} /></td><td class="num">${turn.timings?.first_token_ms ? milliseconds(turn.timings.first_token_ms) : '–'}</td><td class="num">${turn.timings?.total_ms ? milliseconds(turn.timings.total_ms) : '–'}</td><td class="num">${turn.usage ? number(turn.usage.total_tokens) : '–'}</td><td>${turn.route_decision ? word('worker', turn.route_decision.worker_name) : '–'}</td><td>${UNDER_WAY.has(turn.status) ? html`<${Button} kind="small" onClick=${() => cancel(turn)}>${t('stop')}<//>` : html`<button type="button" class="link" onClick=${() => setWhy(turn)}>${t('why')}</button>`}</td></tr>`)}
      </tbody></table></div><${More} of=${list} />
    <//>
    ${why && html`<${Why} turn=${why} user=${why.user_id} may=${may} onClose=${() => setWhy(null)} />`}`
}

function Jobs() {
  const [status, setStatus] = useState('')
  const list = usePages((after) => get('/api/v1/jobs', { status, after, limit: 50 }), [status])
  useRefresh(list.reload, list.items?.some((job) => job.status === 'running'))
  const retry = (job) => post(`/api/v1/jobs/${job.id}/retry`).then(list.reload)
  return html`<div class="filters"><${Select} aria-label=${t('jobs.status')} value=${status} onChange=${setStatus} options=${STATUSES.map((each) => [each, each ? word('status', each) : t('jobs.every')])} /></div>
    <${Loaded} of=${list} empty=${t('jobs.none')}>
      <div class="scroll-x" tabindex="0"><table><thead><tr><th>${t('jobs.status')}</th><th>${t('jobs.task')}</th><th>${t('jobs.for')}</th><th>${t('jobs.at')}</th><th><span class="unseen">${t('actions')}</span></th></tr></thead><tbody>
        ${list.items?.map((job) => html`<tr key=${job.id}><td><span class=${`state ${job.status}`}>${word('status', job.status)}</span>${job.failures > 0 && html`<br /><small class="muted">${t('jobs.failures', { n: job.failures })}</small>`}</td><td>${word('task', job.task)}${job.reason && html`<br /><small class="bad">${job.reason}</small>`}</td><td>${Object.entries(job.ids).map(([name, id]) => html`<small class="muted">${name.replaceAll('_', ' ')} ${String(id).slice(0, 13)} </small>`)}</td><td><${When} at=${job.created_at} /></td><td>${job.status === 'failed' && html`<${Button} kind="small" onClick=${() => retry(job)}>${t('try_again')}<//>`}</td></tr>`)}
      </tbody></table></div><${More} of=${list} />
    <//>`
}
