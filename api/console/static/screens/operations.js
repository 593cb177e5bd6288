// What memory did and why, with the way back.

import { get, post, userPath } from '../api.js'
import { t, word } from '../i18n.js'
import { Button, Chip, html, Loaded, More, Page, Select, toast, usePages, useState, When } from '../ui.js'
import { noted } from '../chat/turn.js'
import { Difference } from './core.js'
import { Fading } from './fading.js'

export const screen = 'operations'
const ACTORS = ['', 'model', 'user', 'filing', 'compression', 'maintenance']
const SAYS_NOTHING = /^memory_filing/ // that what was said was looked at; what came of it is listed by itself
const CANNOT = /^(archival_memory_search|branch|conversation_delete|core_memory_delete|episode_delete|episode_consolidate|episode_retire|episode_archive|episode_remove|episode_restore|episode_pin|episode_unpin|core_memory_pin|core_memory_unpin|fading_undo|memory_proposal|undo|memory_undo)$/

export function Screen({ user, may }) {
  const [actor, setActor] = useState('')
  const [tab, setTab] = useState('log')
  const list = usePages((after) => get(userPath(user, 'memory-operations'), { after, limit: 60 }), [user])
  const shown = list.items?.filter((each) => !SAYS_NOTHING.test(each.type) && (!actor || each.trigger?.actor === actor))
  return html`<${Page} title=${t('nav.operations')} lead=${t('operations.lead')} actions=${html`<${Select} aria-label=${t('operations.by')} value=${actor} onChange=${setActor} options=${ACTORS.map((each) => [each, each ? word('actor', each) : t('operations.everybody')])} />`}>
    <div class="tabs" role="tablist">${['log', 'runs', 'fading'].map((each) => html`<button type="button" role="tab" aria-selected=${tab === each} onClick=${() => setTab(each)}>${t(`operations.${each}`)}</button>`)}</div>
    ${tab === 'log'
      ? html`<${Loaded} of=${list} rows=${8} empty=${t('operations.none')} emptyText=${t('operations.none_hint')}>
          <ul class="cards">${shown?.map((each) => html`<${Entry} key=${each.id} each=${each} user=${user} may=${may} onChanged=${list.reload} />`)}</ul>
          <${More} of=${list} />
        <//>`
      : tab === 'runs' ? html`<${Runs} user=${user} may=${may} />` : html`<${Fading} user=${user} may=${may} />`}
  <//>`
}

function Entry({ each, user, may, onChanged }) {
  const isObject = (value) => value === null || (typeof value === 'object' && !Array.isArray(value))
  const undo = async () => {
    await post(userPath(user, 'memory-operations', each.id, 'undo'))
    onChanged()
    toast(t('undone'))
  }
  const message = each.trigger?.message_id
  return html`<li class="card">
    <div class="card-head"><b>${word('operation', each.type)}</b>${each.field && /^[a-z_]+$/.test(each.field) && html`<${Chip}>${each.type.startsWith('core_memory') ? word('core_section', each.field) : word('change_kind', each.field)}<//>`}<span class="muted">${word('actor', each.trigger?.actor ?? 'user')}</span><small class="muted"><${When} at=${each.at} /></small><span class="grow"></span>
      ${each.undone_at ? html`<${Chip} kind="note">${t('undone')}<//>` : may('memory:write') && !CANNOT.test(each.type) && html`<${Button} kind="small" onClick=${undo}>${t('undo')}<//>`}</div>
    ${each.type.startsWith('core_memory') && isObject(each.old_value) && isObject(each.new_value)
      ? html`<${Difference} before=${each.old_value ?? {}} after=${each.new_value ?? {}} />`
      : html`<p>${noted(each)}</p>`}
    ${each.results?.items?.length > 0 && html`<ul class="plain">${each.results.items.map((item) => html`<li>${item}</li>`)}</ul>`}
    ${each.conversation_id && html`<small><a href=${`#/chat/${each.conversation_id}`}>${message ? t('operations.because') : t('open_conversation')}</a></small>`}
  </li>`
}

function Runs({ user, may }) {
  const list = usePages((after) => get(userPath(user, 'compression-runs'), { after, limit: 20 }), [user])
  const start = async (dry) => {
    await post(userPath(user, 'compression-runs'), { dry_run: dry })
    toast(t('operations.started'))
    setTimeout(list.reload, 1500)
  }
  const undo = async (run) => {
    await post(userPath(user, 'compression-runs', run.id, 'undo'))
    list.reload()
  }
  return html`<p class="muted">${t('operations.runs_lead')}</p>
    ${may('memory:write') && html`<div class="row" style=${{ marginBottom: '1rem' }}><${Button} onClick=${() => start(true)}>${t('operations.dry_run')}<//><${Button} onClick=${() => start(false)}>${t('operations.run_now')}<//></div>`}
    <${Loaded} of=${list} empty=${t('operations.no_runs')}>
      <ul class="cards">${list.items?.map((run) => html`<li class="card" key=${run.id}>
        <div class="card-head"><span class=${`state ${run.status === 'succeeded' || run.status === 'completed' ? 'ok' : run.status}`}>${word('status', run.status)}</span>${run.dry_run && html`<${Chip}>${t('operations.dry')}<//>`}<small class="muted"><${When} at=${run.created_at} /></small><span class="grow"></span>${run.undone_at ? html`<${Chip} kind="note">${t('undone')}<//>` : run.can_be_undone && may('memory:write') && html`<${Button} kind="small" onClick=${() => undo(run)}>${t('undo')}<//>`}</div>
        <p>${t('operations.report', { before: run.report.episodes_before, after: run.report.episodes_after, merged: run.report.superseded })}</p>
        ${run.report.problem && html`<p class="bad">${run.report.problem}</p>`}
      </li>`)}</ul>
      <${More} of=${list} />
    <//>`
}
