// Upkeep: what would be merged or fade, why, what was, and the way back.

import { get, post, userPath } from '../api.js'
import { date, number, t, word } from '../i18n.js'
import { Button, Chip, Confirm, Dialog, html, Loaded, More, toast, useLoad, usePages, useState, When } from '../ui.js'
import { Said } from './parts.js'

export function Upkeep({ user, may }) {
  const list = usePages((after) => get(userPath(user, 'upkeep-runs'), { after, limit: 20 }), [user])
  const policy = useLoad(() => get('/api/v1/upkeep-policy'), [])
  const [asks, setAsks] = useState(false)
  const undo = async (run) => {
    await post(userPath(user, 'upkeep-runs', run.id, 'undo'))
    toast(t('undone'))
    list.reload()
  }
  return html`<p class="muted">${policy.data && t(`fading.${policy.data.fading}`, { days: policy.data.fading_days, importance: number(policy.data.fading_importance) })}</p>
    <div class="row" style=${{ marginBottom: '1rem' }}><${Button} onClick=${() => setAsks(true)}>${t('fading.preview')}<//></div>
    <${Loaded} of=${list} empty=${t('fading.none')}>
      <ul class="cards">${list.items?.map((run) => html`<li class="card" key=${run.id}>
        <div class="card-head"><b>${done(run)}</b><${Chip}>${word('fading_reason', run.reason)}<//><small class="muted"><${When} at=${run.created_at} /></small><span class="grow"></span>${run.undone_at ? html`<${Chip} kind="note">${t('undone')}<//>` : run.can_be_undone && may('memory:write') && html`<${Button} kind="small" onClick=${() => undo(run)}>${t('undo')}<//>`}</div>
        ${run.days !== null && html`<p>${t('fading.by', { days: run.days, importance: number(run.importance) })}</p>`}
      </li>`)}</ul>
      <${More} of=${list} />
    <//>
    ${asks && html`<${Preview} user=${user} may=${may} onClose=${() => setAsks(false)} onDone=${list.reload} />`}`
}

/** What would fade now; where the policy is `never`, with its figures. */
function Preview({ user, may, onClose, onDone }) {
  const found = useLoad(() => get(userPath(user, 'upkeep-preview'), { fading: 'archive' }), [user])
  const carryOut = async () => {
    const run = await post(userPath(user, 'upkeep-runs'), { fading: 'archive' })
    toast(done(run))
    onDone()
  }
  const total = found.data?.total ?? 0
  const merged = found.data?.merges.length ?? 0
  if (!(total || merged) || !may('memory:write')) {
    return html`<${Dialog} title=${t('fading.preview')} onClose=${onClose}><${Loaded} of=${found} rows=${3}><p>${total || merged ? would(merged, total) : t('fading.nothing')}</p><${Merged} items=${found.data?.merges} /><${Memories} items=${found.data?.fading} /><//><//>`
  }
  return html`<${Confirm} title=${would(merged, total)} action=${t(total ? 'fading.action_archive' : 'fading.action_merge')} onConfirm=${carryOut} onClose=${onClose}><${Merged} items=${found.data?.merges} /><${Memories} items=${found.data?.fading} /><//>`
}

const both = (merged, faded) => [merged, faded].filter(Boolean).join(', ')
const done = (run) => both(run.merged_ids.length && t('fading.done_merge', { n: run.merged_ids.length }), run.faded_ids.length && t('fading.done_archive', { n: run.faded_ids.length })) || t('fading.nothing_done')
const would = (merged, total) => both(merged && t('fading.would_merge', { n: number(merged) }), total && t('fading.would_archive', { n: number(total) }))

const Merged = ({ items = [] }) => html`<ul class="cards">${items.slice(0, 50).map((each) => html`<li class="card" key=${each.id}>
  <${Said} text=${each.content} most=${200} />
  <small class="muted">${t('fading.said_by', { text: each.kept_content })}</small>
</li>`)}</ul>`

const Memories = ({ items = [] }) => html`<ul class="cards">${items.slice(0, 50).map((each) => html`<li class="card" key=${each.id}>
  <${Said} text=${each.content} most=${200} />
  <small class="muted">${t(each.last_recalled_at ? 'fading.why_recalled' : 'fading.why_never', { importance: number(each.importance), days: each.unused_days, at: date(each.last_recalled_at ?? each.learned_at) })}</small>
</li>`)}</ul>`
