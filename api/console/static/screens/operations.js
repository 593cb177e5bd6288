// What memory did and why, with the way back.

import { get, post, userPath } from '../api.js'
import { t, word } from '../i18n.js'
import { Button, Chip, html, Loaded, More, Page, Select, toast, usePages, useState, When } from '../ui.js'
import { noted } from '../chat/turn.js'
import { Difference } from './core.js'
import { Upkeep } from './upkeep.js'

export const screen = 'operations'
const ACTORS = ['', 'model', 'user', 'filing', 'maintenance']
const SAYS_NOTHING = /^memory_filing/ // that what was said was looked at; what came of it is listed by itself
const CANNOT = /^(archival_memory_search|branch|conversation_delete|core_memory_delete|episode_delete|episode_merge|episode_archive|episode_restore|episode_pin|episode_unpin|core_memory_pin|core_memory_unpin|upkeep_undo|memory_proposal|undo|memory_undo)$/

const THIS = /^(this message|这条消息)$/

export function Screen({ user, may }) {
  const [actor, setActor] = useState('')
  const [tab, setTab] = useState('log')
  const list = usePages((after) => get(userPath(user, 'memory-operations'), { after, limit: 60 }), [user])
  const shown = list.items?.filter((each) => !SAYS_NOTHING.test(each.type) && (!actor || each.trigger?.actor === actor))
  return html`<${Page} title=${t('nav.operations')} lead=${t('operations.lead')} actions=${html`<${Select} aria-label=${t('operations.by')} value=${actor} onChange=${setActor} options=${ACTORS.map((each) => [each, each ? word('actor', each) : t('operations.everybody')])} />`}>
    <div class="tabs" role="tablist">${['log', 'upkeep'].map((each) => html`<button type="button" role="tab" aria-selected=${tab === each} onClick=${() => setTab(each)}>${t(`operations.${each}`)}</button>`)}</div>
    ${tab === 'log'
      ? html`<${Loaded} of=${list} rows=${8} empty=${t('operations.none')} emptyText=${t('operations.none_hint')}>
          <ul class="cards">${shown?.map((each) => html`<${Entry} key=${each.id} each=${each} user=${user} may=${may} onChanged=${list.reload} />`)}</ul>
          <${More} of=${list} />
        <//>`
      : html`<${Upkeep} user=${user} may=${may} />`}
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
  const items = (each.results?.items ?? []).filter((item) => item !== noted(each))
  return html`<li class="card">
    <div class="card-head"><b>${word('operation', each.type)}</b>${each.field && /^[a-z_]+$/.test(each.field) && html`<${Chip}>${word(each.type.startsWith('core_memory') ? 'core_section' : each.type.startsWith('episode') ? 'type' : 'change_kind', each.field)}<//>`}<span class="muted">${word('actor', each.trigger?.actor ?? 'user')}</span><small class="muted"><${When} at=${each.at} /></small><span class="grow"></span>
      ${each.undone_at ? html`<${Chip} kind="note">${t('undone')}<//>` : may('memory:write') && !CANNOT.test(each.type) && html`<${Button} kind="small" onClick=${undo}>${t('undo')}<//>`}</div>
    ${each.type.startsWith('core_memory') && isObject(each.old_value) && isObject(each.new_value)
      ? html`<${Difference} before=${each.old_value ?? {}} after=${each.new_value ?? {}} />`
      : html`<p>${noted(each)}</p>`}
    ${items.length > 0 && html`<ul class="plain">${items.map((item) => html`<li>${THIS.test(item) ? t('operations.this_message') : item}</li>`)}</ul>`}
    ${each.conversation_id && html`<small><a href=${`#/chat/${each.conversation_id}`}>${message ? t('operations.because') : t('open_conversation')}</a></small>`}
  </li>`
}
