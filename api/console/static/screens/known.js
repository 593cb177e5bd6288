// What is known of the user: statements, each with when it became known and what it comes from.

import { get, post, userPath } from '../api.js'
import { number, t, word } from '../i18n.js'
import { Button, Chip, Confirm, Dialog, Field, html, Loaded, Page, usePages, useState, When } from '../ui.js'
import { VirtualList } from '../virtual-list.js'
import { Forget, Messages } from '../chat/why.js'

export const screen = 'known'
const PAGE = 100

export function Screen({ user, may }) {
  const [dialog, setDialog] = useState(null)
  const list = usePages((after) => get(userPath(user, 'memories'), { after, limit: PAGE }), [user])
  const close = () => setDialog(null)
  const pin = async (each) => {
    await post(userPath(user, 'memories', each.id, 'pin'), { expert: each.expert, space: each.space, pinned: !each.pinned })
    list.reload()
  }
  const draw = (each) => html`
    <div id=${`text-${each.id}`} dir="auto"><p>${each.text}</p></div>
    <div class="facts">
      <${Chip}>${each.field ? word('field', each.field) : t('known.written')}<//>
      <${When} at=${each.since} />
      ${each.is_over && html`<${Chip} kind="note">${t('known.over')}<//>`}
      ${each.replaced && html`<span>${t('known.replaced', { text: each.replaced })}</span>`}
      ${each.pinned && html`<${Chip}>${t('memory.pinned')}<//>`}
      <span class="grow"></span>
      <button type="button" class="link" onClick=${() => setDialog({ kind: 'from', each })}>${t('memory.from')}</button>
      ${may('memory:write') && html`<button type="button" class="link" onClick=${() => setDialog({ kind: 'wrong', each })}>${t('known.wrong')}</button>
        <${Button} kind="link" onClick=${() => pin(each)}>${t(each.pinned ? 'memory.unpin' : 'memory.pin')}<//>
        <button type="button" class="link" onClick=${() => setDialog({ kind: 'forget', each })}>${t('forget')}…</button>`}
    </div>`
  return html`<${Page} title=${t('nav.known')} lead=${t('known.lead')}>
    <${Loaded} of=${list} rows=${8} empty=${t('memory.none')} emptyText=${t('known.none_hint')}>
      <p class="muted small-text">${t(list.more ? 'memory.count' : 'memory.count_all', { n: number(list.items?.length ?? 0) })}</p>
      <${VirtualList} items=${list.items ?? []} more=${list.more} label=${t('nav.known')} classOf=${() => 'card'} draw=${draw} />
    <//>
    ${dialog?.kind === 'from' && html`<${Dialog} side title=${t('memory.from')} onClose=${close}><blockquote tabindex="0">${dialog.each.text}</blockquote><${Messages} messages=${dialog.each.sources} /><//>`}
    ${dialog?.kind === 'forget' && html`<${Forget} what=${dialog.each.id} text=${dialog.each.text} expert=${dialog.each.expert} user=${user} onClose=${close} onChanged=${list.reload} />`}
    ${dialog?.kind === 'wrong' && html`<${Wrong} each=${dialog.each} user=${user} onClose=${close} onDone=${list.reload} />`}
  <//>`
}

/** Say what holds instead. */
function Wrong({ each, user, onClose, onDone }) {
  const [text, setText] = useState(each.text)
  const mend = () => post(userPath(user, 'memories', each.id, 'correct'), { text, expert: each.expert, space: each.space }).then(onDone)
  return html`<${Confirm} title=${t('known.wrong')} action=${t('save')} kind="primary" missing=${text.trim() ? null : t('missing.text')} onConfirm=${mend} onClose=${onClose}>
    <${Field} label=${t('known.right')}><textarea rows="3" autofocus maxlength="300" value=${text} onInput=${(event) => setText(event.target.value)}></textarea><//>
  <//>`
}
