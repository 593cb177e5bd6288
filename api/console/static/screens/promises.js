// What the assistant has promised to say by itself: made, moved, done and cancelled here.

import { download, get, patch, post, remove, userPath } from '../api.js'
import { date, t, word } from '../i18n.js'
import { Button, Chip, Confirm, Field, html, Loaded, More, Page, Tabs, toast, usePages, useState } from '../ui.js'

export const screen = 'promises'
const STATES = ['open', 'kept', 'missed', 'cancelled']

export function Screen({ user, may }) {
  const [state, setState] = useState('open')
  const [dialog, setDialog] = useState(null)
  const list = usePages((after) => get(userPath(user, 'promises'), { state, after, limit: 50 }), [user, state])
  const writes = may('memory:write')
  const actions = html`<${Button} kind="quiet" onClick=${() => download(userPath(user, 'promises', 'calendar.ics'), 'promises.ics')}>${t('promises.calendar')}<//>${writes && html`<button type="button" class="button primary" onClick=${() => setDialog({})}>${t('promises.make')}</button>`}`
  return html`<${Page} title=${t('nav.promises')} lead=${t('promises.lead')} actions=${actions}>
    <${Tabs} value=${state} onChange=${setState} options=${STATES.map((each) => [each, word('promise_state', each)])} />
    <${Loaded} of=${list} rows=${4} empty=${t('promises.none')} emptyText=${state === 'open' ? t('promises.none_hint') : ''}>
      <ul class="cards">${list.items?.map((each) => html`<${Promised} key=${each.id} each=${each} user=${user} may=${writes} onMove=${() => setDialog(each)} onChanged=${list.reload} />`)}</ul>
      <${More} of=${list} />
    <//>
    ${dialog && html`<${Ask} user=${user} each=${dialog} onClose=${() => setDialog(null)} onDone=${list.reload} />`}
  <//>`
}

function Promised({ each, user, may, onMove, onChanged }) {
  const path = userPath(user, 'promises', each.id)
  const settle = async (request, told) => {
    await request()
    toast(t(told))
    onChanged()
  }
  const waits = each.state === 'open' || each.state === 'due'
  return html`<li class="card">
    <div class="card-head"><b>${date(each.when, { dateStyle: 'full', timeStyle: 'short', timeZone: each.timezone })}</b>${each.repeats && html`<${Chip}>${each.said}<//>`}${each.state === 'due' && html`<${Chip} kind="note">${word('promise_state', 'due')}<//>`}<small class="muted">${each.timezone}</small></div>
    <p dir="auto">${each.text}</p>
    ${each.quote && html`<p class="muted small-text" dir="auto">“${each.quote}”</p>`}
    <div class="row end">
      ${each.conversation_id && html`<small><a href=${`#/chat/${each.conversation_id}`}>${t('open_conversation')}</a></small>`}<span class="grow"></span>
      ${may && html`<button type="button" class="button quiet" onClick=${onMove}>${t('promises.move')}</button>`}
      ${may && waits && html`<${Button} kind="quiet" onClick=${() => settle(() => remove(path), 'promises.cancelled')}>${t('promises.cancel')}<//><${Button} onClick=${() => settle(() => patch(path, { state: 'kept' }), 'promises.done')}>${t('promises.is_done')}<//>`}
    </div>
  </li>`
}

function Ask({ user, each, onClose, onDone }) {
  const [text, setText] = useState(each.text ?? '')
  const [when, setWhen] = useState('')
  const save = () => (each.id ? patch(userPath(user, 'promises', each.id), { text, when }) : post(userPath(user, 'promises'), { text, when })).then(onDone)
  const missing = text.trim() ? (when.trim() ? null : t('promises.missing_when')) : t('missing.text')
  return html`<${Confirm} title=${t(each.id ? 'promises.move' : 'promises.make')} action=${t('save')} kind="primary" missing=${missing} onConfirm=${save} onClose=${onClose}>
    <${Field} label=${t('promises.text')}><input value=${text} autofocus=${!each.id} onInput=${(event) => setText(event.target.value)} /><//>
    <${Field} label=${t('promises.when')} hint=${t('promises.when_hint')}><input value=${when} autofocus=${Boolean(each.id)} placeholder=${each.said ?? ''} onInput=${(event) => setWhen(event.target.value)} /><//>
  <//>`
}
