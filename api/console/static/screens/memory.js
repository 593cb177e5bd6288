// Memories: found by words, kind and time; each with what it comes from, and the way to mend or forget it.

import { get, patch, post, put, remove, userPath } from '../api.js'
import { date, number, percent, t, word } from '../i18n.js'
import { attempt, Button, Chip, Confirm, Dialog, Field, html, Loaded, Meter, Page, Select, toast, useLoad, usePages, useSettled, useState, When } from '../ui.js'
import { VirtualList } from '../virtual-list.js'
import { Affected, Forget, Messages } from '../chat/why.js'
import { Said } from './parts.js'

export const screen = 'memory'
const PAGE = 200
const TYPES = ['', 'turn', 'preference', 'decision', 'context', 'outcome']
const ORIGINS = ['', 'user_said', 'assistant_said', 'tool', 'document', 'derived']

export function Screen({ user, may }) {
  const [filter, setFilter] = useState({ contains: '', episode_type: '', origin: '', superseded: false })
  const [picked, setPicked] = useState(new Map())
  const [dialog, setDialog] = useState(null)
  const contains = useSettled(filter.contains)
  const list = usePages((after) => get(userPath(user, 'episodes'), { ...filter, contains, after, limit: PAGE }), [user, contains, filter.episode_type, filter.origin, filter.superseded])
  const changed = () => {
    setPicked(new Map())
    list.reload()
  }
  const pick = (each) => {
    const next = new Map(picked)
    if (!next.delete(each.id)) next.set(each.id, each)
    setPicked(next)
  }
  const keys = (event, each) => {
    if (event.key === 'Enter') setDialog({ kind: 'one', each })
    else if (event.key === ' ' && may('memory:write') && !isPast(each)) {
      event.preventDefault()
      pick(each)
    }
  }
  return html`<${Page} title=${t('nav.memory')} lead=${t('memory.lead')} actions=${may('memory:write') && html`<button type="button" class="button primary" onClick=${() => setDialog({ kind: 'new' })}>${t('memory.write')}</button>`}>
    <div class="filters">
      <input type="search" placeholder=${t('memory.search')} aria-label=${t('memory.search')} value=${filter.contains} onInput=${(event) => setFilter({ ...filter, contains: event.target.value })} />
      <${Select} aria-label=${t('memory.type')} value=${filter.episode_type} onChange=${(episode_type) => setFilter({ ...filter, episode_type })} options=${TYPES.map((each) => [each, each ? word('type', each) : t('memory.every_type')])} />
      <${Select} aria-label=${t('memory.origin')} value=${filter.origin} onChange=${(origin) => setFilter({ ...filter, origin })} options=${ORIGINS.map((each) => [each, each ? word('origin', each) : t('memory.every_origin')])} />
      <label class="check"><input type="checkbox" checked=${filter.superseded} onChange=${(event) => setFilter({ ...filter, superseded: event.target.checked })} />${t('memory.past')}</label>
    </div>
    <${Loaded} of=${list} rows=${8} empty=${contains ? t('memory.none_found') : t('memory.none')} emptyText=${contains ? '' : t('memory.none_hint')}>
      <p class="muted small-text">${t(list.more ? 'memory.count' : 'memory.count_all', { n: number(list.items?.length ?? 0) })}<span class="keys-hint"> · ${t('memory.list_keys')}</span></p>
      <${VirtualList} items=${list.items ?? []} more=${list.more} label=${t('memory.list')} onKey=${keys} classOf=${(each) => `card${picked.has(each.id) ? ' selected' : ''}${isPast(each) ? ' past' : ''}`} draw=${(each) => html`<${Card} each=${each} picked=${picked.has(each.id)} onPick=${() => pick(each)} onOpen=${() => setDialog({ kind: 'one', each })} may=${may} />`} />
    <//>
    ${picked.size > 0 && html`<div class="bulk"><span class="grow">${t('memory.picked', { n: picked.size })}</span><button type="button" class="link" onClick=${() => setPicked(new Map())}>${t('cancel')}</button><button type="button" class="button" onClick=${() => setDialog({ kind: 'bulk' })}>${t('forget')}…</button></div>`}
    ${dialog?.kind === 'new' && html`<${Write} user=${user} onClose=${() => setDialog(null)} onDone=${changed} />`}
    ${dialog?.kind === 'one' && html`<${One} id=${dialog.each.id} user=${user} may=${may} onClose=${() => setDialog(null)} onChanged=${changed} onForget=${() => setDialog({ kind: 'forget', each: dialog.each })} />`}
    ${dialog?.kind === 'forget' && html`<${Forget} what=${dialog.each.id} text=${dialog.each.content} expert=${dialog.each.expert} user=${user} onClose=${() => setDialog(null)} onChanged=${changed} />`}
    ${dialog?.kind === 'bulk' && html`<${ForgetAll} picked=${[...picked.values()]} user=${user} onClose=${() => setDialog(null)} onDone=${changed} />`}
  <//>`
}

const isPast = (each) => Boolean(each.superseded_by || each.retracted_at)

function Card({ each, picked, onPick, onOpen, may }) {
  const past = isPast(each)
  return html`
    <div id=${`text-${each.id}`} dir="auto"><${Said} text=${each.content} most=${420} /></div>
    <div class="facts">
      <${Chip}>${word('type', each.episode_type)}<//>
      <${When} at=${each.created_at} />
      <span>${word('origin', each.origin)}</span>
      ${each.recall_count > 0 && html`<span>${t('memory.recalled', { n: each.recall_count })} <${When} at=${each.last_recalled_at} /></span>`}
      ${each.pinned_at && html`<${Chip}>${t('memory.pinned')}<//>`}
      ${past && html`<${Chip} kind="note">${t(each.retracted_at ? 'memory.forgotten' : each.archived_at ? 'memory.archived' : 'memory.superseded')}<//>`}
      <span class="grow"></span>
      <button type="button" class="link" onClick=${onOpen}>${t('memory.open')}</button>
      ${may('memory:write') && !past && html`<label class="check"><input type="checkbox" checked=${picked} onChange=${onPick} aria-label=${t('memory.pick')} /></label>`}
    </div>`
}

function One({ id, user, may, onClose, onChanged, onForget }) {
  const found = useLoad(() => get(userPath(user, 'episodes', id)), [id])
  const [text, setText] = useState(null)
  const each = found.data
  const written = each && each.episode_type !== 'turn'
  const save = async () => {
    await patch(userPath(user, 'episodes', id), { content: text })
    setText(null)
    found.reload()
    onChanged()
  }
  const act = async (request) => {
    await request()
    found.reload()
    onChanged()
  }
  const pin = () => act(() => (each.pinned_at ? remove(userPath(user, 'episodes', id, 'pin')) : put(userPath(user, 'episodes', id, 'pin'))))
  const restore = () => act(() => post(userPath(user, 'episodes', id, 'restore')))
  return html`<${Dialog} side title=${t('memory.one')} onClose=${onClose}>
    <${Loaded} of=${found}>${each && html`
      <section>${text === null ? html`<${Said} text=${each.content} />` : html`<textarea rows="5" value=${text} aria-label=${t('memory.text')} onInput=${(event) => setText(event.target.value)}></textarea>`}
        ${may('memory:write') && html`<div class="row">
          ${text !== null ? html`<${Button} kind="primary" onClick=${save}>${t('save')}<//><button type="button" class="button quiet" onClick=${() => setText(null)}>${t('cancel')}</button>` : html`${written && html`<button type="button" class="button" onClick=${() => setText(each.content)}>${t('correct')}</button>`}${each.archived_at ? html`<${Button} onClick=${restore}>${t('memory.restore')}<//>` : html`<${Button} onClick=${pin}>${t(each.pinned_at ? 'memory.unpin' : 'memory.pin')}<//>`}<button type="button" class="button danger" onClick=${onForget}>${t('forget')}…</button>`}
        </div>`}
      </section>
      <section><dl class="pairs">
        <dt>${t('memory.type')}</dt><dd>${word('type', each.episode_type)}</dd>
        <dt>${t('memory.origin')}</dt><dd>${word('origin', each.origin)}</dd>
        <dt>${t('expert')}</dt><dd>${each.expert}</dd>
        <dt>${t('memory.since')}</dt><dd>${date(each.created_at, { dateStyle: 'long', timeStyle: 'short' })}</dd>
        <dt>${t('memory.importance')}</dt><dd><${Meter} value=${each.importance} label=${percent(each.importance)} /> ${number(each.importance)}</dd>
        <dt>${t('memory.recalls')}</dt><dd>${each.recall_count} ${each.last_recalled_at && html`(<${When} at=${each.last_recalled_at} />)`}</dd>
      </dl></section>
      <section><h3>${t('memory.from')}</h3><${Messages} messages=${each.sources} conversation=${each.conversation_id} /></section>`}
    <//>
  <//>`
}

function Write({ user, onClose, onDone }) {
  const [text, setText] = useState('')
  const [type, setType] = useState('context')
  const write = () => post(userPath(user, 'episodes'), { content: text, episode_type: type }).then(onDone)
  return html`<${Confirm} title=${t('memory.write')} action=${t('save')} kind="primary" missing=${text.trim() ? null : t('missing.text')} onConfirm=${write} onClose=${onClose}>
    <${Field} label=${t('memory.text')} hint=${t('memory.text_hint')}><textarea rows="4" autofocus value=${text} onInput=${(event) => setText(event.target.value)}></textarea><//>
    <${Field} label=${t('memory.type')}><${Select} value=${type} onChange=${setType} options=${TYPES.slice(2, 6).map((each) => [each, word('type', each)])} /><//>
  <//>`
}

/** Forget several, one operation each, so that each can be undone. */
function ForgetAll({ picked, user, onClose, onDone }) {
  const preview = useLoad(async () => {
    const each = await Promise.all(picked.map(({ id, expert }) => post(userPath(user, 'memory', 'forget'), { what: id, expert, dry_run: true })))
    const sum = (name) => each.reduce((total, { affected }) => total + affected[name], 0)
    return { items: each.flatMap(({ items }) => items), affected: { messages: sum('messages'), memories: sum('memories'), core_memory_items: sum('core_memory_items') } }
  })
  const forget = async () => {
    let done = 0
    for (const { id, expert } of picked) done += (await attempt(() => post(userPath(user, 'memory', 'forget'), { what: id, expert }))) ? 1 : 0
    toast(t('memory.forgot', { n: done }))
    onDone()
  }
  return html`<${Confirm} title=${t('memory.picked', { n: picked.length })} action=${t('forget')} onConfirm=${forget} onClose=${onClose}>
    <${Loaded} of=${preview} rows=${3}>${preview.data && html`<${Affected} change=${preview.data} />`}<//>
    <p class="muted">${t('forget_note')}</p>
  <//>`
}
