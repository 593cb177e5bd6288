// Turns of a conversation, and the work that goes on behind the answers.

import { get, post } from '../api.js'
import { milliseconds, number, t, word } from '../i18n.js'
import { Button, Chip, html, Loaded, More, Page, Select, Tabs, useLoad, usePages, useState, When } from '../ui.js'
import { useRefresh } from './parts.js'
import { Why } from '../chat/why.js'

export const screen = 'jobs'
const STATUSES = ['', 'waiting', 'running', 'succeeded', 'failed', 'cancelled']

export function Screen({ user, may }) {
  const [tab, setTab] = useState('turns')
  return html`<${Page} wide title=${t('nav.jobs')} lead=${t('jobs.lead')}>
    <${Tabs} value=${tab} onChange=${setTab} options=${['turns', 'jobs'].map((each) => [each, t(`jobs.${each}`)])} />
    ${tab === 'turns' ? html`<${Turns} user=${user} may=${may} />` : html`<${Jobs} />`}
  <//>`
}

function Turns({ user, may }) {
  const conversations = useLoad(() => get('/api/v1/conversations', { user_id: user, limit: 50 }), [user])
  const [chosen, setChosen] = useState(null)
  const id = chosen ?? conversations.data?.items[0]?.id
  const list = useLoad(async () => (id ? get(`/api/v1/conversations/${id}/turns`, { limit: 200 }) : { items: [] }), [id])
  const [why, setWhy] = useState(null)
  useRefresh(list.reload, list.data?.items.some((turn) => turn.status === 'running' || turn.status === 'waiting'))
  const cancel = (turn) => post(`/api/v1/turns/${turn.id}/cancel`).then(list.reload)
  return html`<${Loaded} of=${conversations} empty=${t('jobs.no_turns')}>
    <div class="filters"><${Select} aria-label=${t('conversation')} value=${id} onChange=${setChosen} options=${(conversations.data?.items ?? []).map((each) => [each.id, each.title || each.session_id])} /></div>
    <${Loaded} of=${list} empty=${t('jobs.no_turns')}>
      <div class="scroll-x" tabindex="0"><table><thead><tr><th>${t('jobs.status')}</th><th>${t('jobs.at')}</th><th>${t('jobs.first_token')}</th><th>${t('jobs.total')}</th><th>${t('jobs.tokens')}</th><th>${t('why.route')}</th><th><span class="unseen">${t('actions')}</span></th></tr></thead><tbody>
        ${list.data?.items.toReversed().map((turn) => html`<tr key=${turn.id}><td><span class=${`state ${turn.status}`}>${word('status', turn.status)}</span>${turn.error && html`<br /><small class="bad">${turn.error.code}</small>`}${turn.degraded.map((name) => html` <${Chip} kind="note">${word('degraded', name)}<//>`)}</td><td><${When} at=${turn.accepted_at} /></td><td class="num">${turn.timings?.first_token_ms ? milliseconds(turn.timings.first_token_ms) : '–'}</td><td class="num">${turn.timings?.total_ms ? milliseconds(turn.timings.total_ms) : '–'}</td><td class="num">${turn.usage ? number(turn.usage.total_tokens) : '–'}</td><td>${turn.route_decision ? word('worker', turn.route_decision.worker_name) : '–'}</td><td>${turn.status === 'running' || turn.status === 'waiting' ? html`<${Button} kind="small" onClick=${() => cancel(turn)}>${t('stop')}<//>` : html`<button type="button" class="link" onClick=${() => setWhy(turn)}>${t('why')}</button>`}</td></tr>`)}
      </tbody></table></div>
    <//>
    ${why && html`<${Why} turn=${why} user=${user} may=${may} onClose=${() => setWhy(null)} />`}
  <//>`
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
