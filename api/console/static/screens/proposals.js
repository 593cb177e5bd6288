// Changes of memory that wait for the user, each with what it rests on; accepted, refused and undone here.

import { get, post, userPath } from '../api.js'
import { t, word } from '../i18n.js'
import { Button, Chip, html, Loaded, More, Page, Tabs, toast, usePages, useState, When } from '../ui.js'

export const screen = 'proposals'
const STATES = ['waiting', 'accepted', 'rejected', 'undone', 'expired']

export function Screen({ user, may }) {
  const [state, setState] = useState('waiting')
  const list = usePages((after) => get(userPath(user, 'memory-proposals'), { state, after, limit: 30 }), [user, state])
  return html`<${Page} title=${t('nav.proposals')} lead=${t('proposals.lead')}>
    <${Tabs} value=${state} onChange=${setState} options=${STATES.map((each) => [each, word('proposal_state', each)])} />
    <${Loaded} of=${list} rows=${4} empty=${t(state === 'waiting' ? 'proposals.none' : 'proposals.none_such')} emptyText=${state === 'waiting' ? t('proposals.none_hint') : ''}>
      <ul class="cards">${list.items?.map((each) => html`<${Proposal} key=${each.id} each=${each} user=${user} may=${may} onChanged=${list.reload} />`)}</ul>
      <${More} of=${list} />
    <//>
  <//>`
}

function Proposal({ each, user, may, onChanged }) {
  const path = userPath(user, 'memory-proposals', each.id)
  const settle = async (accept) => {
    await post(path, { accept })
    toast(t(accept ? 'proposals.accepted' : 'proposals.refused'))
    onChanged()
  }
  const undo = async () => {
    await post(`${userPath(user, 'memory-operations', each.operation_id)}/undo`)
    toast(t('undone'))
    onChanged()
  }
  return html`<li class="card">
    <div class="card-head"><b>${word('proposal', each.kind)}</b>${each.expert && each.expert !== 'default' && html`<${Chip}>${each.expert}<//>`}<small class="muted"><${When} at=${each.at} /></small></div>
    ${each.memories.length
      ? each.memories.map((memory, place) => html`<${Memory} memory=${memory} stays=${place === 0} />`)
      : html`<p dir="auto">${each.text}</p>${each.replaces && html`<p class="muted" dir="auto">${t('proposals.in_place_of')}: ${each.replaces}</p>`}<${Sources} messages=${each.messages} />`}
    <div class="row end">
      ${each.conversation_id && html`<small><a href=${`#/chat/${each.conversation_id}`}>${t('open_conversation')}</a></small>`}<span class="grow"></span>
      ${may('memory:write') && each.state === 'waiting' && html`<${Button} kind="quiet" onClick=${() => settle(false)}>${t('proposals.refuse')}<//><${Button} kind="primary" onClick=${() => settle(true)}>${t('proposals.accept')}<//>`}
      ${may('memory:write') && each.state === 'accepted' && each.operation_id && html`<${Button} kind="small" onClick=${undo}>${t('undo')}<//>`}
    </div>
  </li>`
}

function Memory({ memory, stays }) {
  return html`<div class="proposed">
    <div class="facts"><${Chip} kind=${stays ? '' : 'note'}>${t(stays ? 'proposals.stays' : 'proposals.goes')}<//>${memory.section && html`<${Chip}>${word('core_section', memory.section)} · ${word('field', memory.field)}<//>`}<${When} at=${memory.created_at} /></div>
    <p dir="auto">${memory.text}</p>
    <${Sources} messages=${memory.messages} />
  </div>`
}

function Sources({ messages }) {
  if (!messages.length) return null
  return html`<ul class="plain small-text muted">${messages.map((said) => html`<li key=${said.message_id}><${When} at=${said.created_at} /> · <b>${said.speaker ?? t(`role.${said.role}`)}</b>: <span dir="auto">${said.content}</span></li>`)}</ul>`
}
