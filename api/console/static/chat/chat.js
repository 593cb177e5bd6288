// The chat: a conversation, its answers as they come, and why each of them is as it is.

import { patch, post, remove, saveAs } from '../api.js'
import { bytes, dateTime, t } from '../i18n.js'
import { attempt, Button, Chip, Confirm, Dialog, Failure, Field, html, Icon, IconButton, Skeleton, useEffect, useLayoutEffect, useLoad, useReducer, useRef, useState } from '../ui.js'
import { go } from '../shell.js'
import { sendDocument } from '../screens/parts.js'
import { DEMO, loadDemo } from '../demo.js'
import { TEMPORARY } from '../preferences.js'
import { Compare, NotUsedHere } from './compare.js'
import { Composer } from './composer.js'
import { Conversation } from './conversation.js'
import { Turn } from './turn.js'
import { Why } from './why.js'

export const screen = 'chat'
const SHOWN_AT_FIRST = 60
const FEW = 5 // chats of somebody who still finds their way
const NEAR_THE_END = 80 // pixels

export function Screen({ service, user, rest, may, conversations }) {
  const [id, opens] = rest
  const [, draw] = useReducer((count) => count + 1, 0)
  const [failure, setFailure] = useState(null)
  const [conversation, setConversation] = useState(() => fresh(user))
  const [why, setWhy] = useState(null)
  const [dialog, setDialog] = useState(null)
  const [earlier, setEarlier] = useState(SHOWN_AT_FIRST)
  const [options, setOptions] = useState({})
  const [connecting, setConnecting] = useState(false)
  const [prefill, setPrefill] = useState({ text: '' })
  const choice = useLoad(() => (service.offline && may('admin') ? import('../screens/model-form.js') : null))
  const follows = useRef(true)
  const scroller = useRef()
  const thread = useRef()
  const [away, setAway] = useState(false)

  const open = async (made, which) => {
    setFailure(null)
    setConversation(made)
    follows.current = true
    if (!which) return
    try {
      await made.load(which)
      if (opens === 'why') setWhy(made.turns.findLast((turn) => !turn.imported) ?? null)
    } catch (error) {
      if (!made.closing.signal.aborted) setFailure(error)
    }
  }
  useEffect(() => {
    if ((id ?? null) === conversation.id) return // also a new one, which may have been given documents by now
    conversation.close()
    open(id ? new Conversation(user) : fresh(user), id)
    setEarlier(SHOWN_AT_FIRST)
  }, [id])
  useEffect(() => {
    const begun = () => {
      if (!conversation.temporary) {
        go('chat', conversation.id)
        conversations.reload()
      }
    }
    conversation.addEventListener('change', draw)
    conversation.addEventListener('begun', begun)
    return () => {
      conversation.removeEventListener('change', draw)
      conversation.removeEventListener('begun', begun)
    }
  }, [conversation])
  useEffect(() => () => conversation.close(), [conversation])

  // The end stays in sight while the reader is there.
  useLayoutEffect(() => {
    const stay = () => {
      if (follows.current && thread.current.querySelector('.turn')) scroller.current.scrollTop = scroller.current.scrollHeight
    }
    const watcher = new ResizeObserver(stay)
    watcher.observe(thread.current)
    return () => watcher.disconnect()
  }, [])
  const scrolled = () => {
    if (!scroller.current) return // the event of a screen that has been left
    const { scrollTop, scrollHeight, clientHeight } = scroller.current
    follows.current = scrollHeight - scrollTop - clientHeight < NEAR_THE_END
    setAway(!follows.current)
  }
  const toEnd = () => {
    follows.current = true
    scroller.current.scrollTo({ top: scroller.current.scrollHeight, behavior: 'smooth' })
  }

  const ask = (message, more = {}) => {
    follows.current = true
    return attempt(async () => {
      await conversation.ask(message, { ...options, ...more })
      if (!service.offline && !conversation.temporary && conversation.turns.length === 1 && may('memory:write')) await name()
    })
  }
  const setTemporary = (temporary) => open(new Conversation(user, { temporary }), null)
  /** A model names the chat by its first exchange; without one its first words do. */
  const name = async () => {
    if (conversation.turns[0].status !== 'completed') return
    conversation.stored = await post(`/api/v1/conversations/${conversation.id}/name`).catch(() => conversation.stored)
    conversations.reload()
    draw()
  }
  const change = async (what) => {
    conversation.stored = await patch(`/api/v1/conversations/${conversation.id}`, what)
    conversations.reload()
    draw()
  }
  const removeAll = async () => {
    await remove(`/api/v1/conversations/${conversation.id}`)
    conversations.reload()
    go('chat')
  }
  const again = (turn, without = [], text = '') => {
    setWhy(null)
    if (without.length) setDialog({ kind: 'compare', place: conversation.turns.indexOf(turn), before: turn, without: text })
    return ask(turn.message, { images: turn.images, replaces: turn.id, without })
  }

  const { turns } = conversation
  const loading = id && id !== conversation.id && !failure
  const shown = turns.slice(-earlier)
  const { stored } = conversation
  const writes = conversation.id && !conversation.temporary && may('memory:write')
  return html`<div class="chat">
    <header class=${turns.length ? 'chat-head' : 'chat-head unbegun'}>
      <h1>${stored ? stored.title || t('untitled') : conversation.temporary ? t('temporary') : turns.length ? turns[0].message.slice(0, 80) : t('new_chat')}</h1>
      ${conversation.stored && conversation.stored.expert !== 'default' && html`<${Chip}>${conversation.stored.expert}<//>`}
      ${(conversation.stored?.space ?? (turns.length > 0 && options.space)) && html`<${Chip}>${conversation.stored?.space ?? options.space}<//>`}
      ${conversation.temporary && html`<${Chip} kind="note">${t('temporary_note')}<//>`}
      <span class="grow"></span>
      ${service.model && html`<a class="answers clip" href=${may('admin') ? '#/model' : undefined} title=${t('model.answers', { model: service.model })}>${service.model}</a>`}
      ${conversation.documents.length > 0 && html`<button type="button" class="button quiet small" onClick=${() => setDialog({ kind: 'documents' })}>${t('documents.count', { n: conversation.documents.length })}</button>`}
      ${conversation.excluded.length > 0 && html`<button type="button" class="button quiet small" onClick=${() => setDialog({ kind: 'excluded' })}>${t('exclusions.count', { n: conversation.excluded.length })}</button>`}
      ${writes && html`<${IconButton} icon="edit" label=${t('chats.rename')} onClick=${() => setDialog({ kind: 'rename' })} /><${IconButton} icon="pin" label=${t(stored?.pinned ? 'memory.unpin' : 'chats.pin')} aria-pressed=${Boolean(stored?.pinned)} onClick=${() => attempt(() => change({ pinned: !stored?.pinned }))} />`}
      ${turns.length > 0 && html`<${IconButton} icon="download" label=${t('chats.export')} onClick=${() => saveAs(asMarkdown(stored?.title, turns), `${(stored?.title || t('conversation')).replace(/[\\/:*?"<>|]/g, ' ').trim()}.md`)} />`}
      ${writes && html`<${IconButton} icon="trash" label=${t('remove_conversation')} onClick=${() => setDialog({ kind: 'remove' })} />`}
    </header>
    <div class="scroller" ref=${scroller} onScroll=${scrolled}>
      <div class="thread" ref=${thread} role="log" aria-label=${t('conversation')}>
        ${service.offline && !turns.length && !loading && (may('admin') ? choice.data && html`<${choice.data.Connect} onChoose=${() => setConnecting(true)} />` : html`<p class="banner"><${Icon} name="spark" /><span>${t('offline')} <code>ANAMNESIS_LLM_MODEL</code> ${t('and')} <code>ANAMNESIS_LLM_API_KEY</code>${t('full_stop')}</span></p>`)}
        ${failure && html`<${Failure} error=${failure} retry=${() => open(new Conversation(user), id)} />`}
        ${loading && html`<${Skeleton} rows=${6} />`}
        ${!loading && !failure && !turns.length && !connecting && html`<${Welcome} onTry=${(text) => setPrefill({ text })} mayLoad=${may('admin') && !service.user_id && user !== DEMO} isNew=${!(conversations.items?.length > FEW)} />`}
        ${turns.length > earlier && html`<button type="button" class="button quiet" onClick=${() => setEarlier(earlier + 200)}>${t('show_earlier', { n: turns.length - earlier })}</button>`}
        ${!loading && shown.map((turn, n) => html`<${Turn} key=${turn.key} turn=${turn} place=${turns.length - shown.length + n} conversation=${conversation} may=${may} onWhy=${setWhy} onEdit=${(one, text) => ask(text, { images: one.images, replaces: one.id })} onRegenerate=${(one) => again(one)} onCompare=${(place) => setDialog({ kind: 'compare', place })} />`)}
      </div>
    </div>
    <div class="dock">
      ${away && html`<button type="button" class="round to-end" aria-label=${t('to_end')} onClick=${toEnd}><${Icon} name="down" /></button>`}
      <${Composer} longest=${service.limits.message_characters} draftKey=${id ?? `new.${user}`} isNew=${!conversation.id && !turns.length} underWay=${conversation.underWay} temporary=${conversation.temporary} user=${user} mayRead=${may('memory:read')} hasTalked=${conversations.items?.length > 0} onTemporary=${setTemporary} options=${options} onOptions=${setOptions} onSend=${ask} onDocument=${(file) => sendDocument(conversation.documentsPath, file).then(() => conversation.loadDocuments())} onStop=${() => attempt(() => conversation.stop())} prefill=${prefill} />
      <p class="small-print">${t('small_print')}</p>
    </div>
    ${why && html`<${Why} turn=${why} user=${conversation.user} may=${may} onClose=${() => setWhy(null)} onAnswerAgain=${conversation.underWay ? null : (without, text) => again(why, without, text)} onExcluded=${() => conversation.loadExcluded()} />`}
    ${dialog?.kind === 'compare' && conversation.turns[dialog.place] && html`<${Compare} conversation=${conversation} ...${dialog} onClose=${() => setDialog(null)} />`}
    ${dialog?.kind === 'excluded' && html`<${NotUsedHere} conversation=${conversation} mayChange=${may('memory:write')} onClose=${() => setDialog(null)} />`}
    ${dialog?.kind === 'rename' && html`<${Rename} title=${stored?.title ?? ''} onClose=${() => setDialog(null)} onDone=${(title) => change({ title })} />`}
    ${dialog?.kind === 'documents' && html`<${Documents} conversation=${conversation} onClose=${() => setDialog(null)} />`}
    ${dialog?.kind === 'remove' && html`<${Confirm} title=${t('remove_conversation')} action=${t('remove')} onConfirm=${removeAll} onClose=${() => setDialog(null)}><p>${t('remove_conversation_note')}</p><//>`}
  </div>`
}

/** A new chat: a temporary one where the reader prefers that. */
const fresh = (user) => new Conversation(user, { temporary: localStorage.getItem(TEMPORARY) === 'yes' })

function Rename({ title, onClose, onDone }) {
  const [text, setText] = useState(title)
  return html`<${Confirm} title=${t('chats.rename')} action=${t('save')} kind="primary" onConfirm=${() => onDone(text)} onClose=${onClose}>
    <${Field} label=${t('chats.name')}><input autofocus maxlength="200" value=${text} onInput=${(event) => setText(event.target.value)} /><//>
  <//>`
}

/** The documents that were given in a chat; each can be taken out of it. */
function Documents({ conversation, onClose }) {
  const { documents } = conversation
  const takeOut = async (each) => {
    await remove(`${conversation.documentsPath}/${each.id}`)
    await conversation.loadDocuments()
  }
  return html`<${Dialog} title=${t('documents.title')} onClose=${onClose}>
    <p class="muted">${t('documents.lead')}</p>
    ${documents.map((each) => html`<p class="row" key=${each.id}><b class="clip">${each.source}</b><small class="muted">${bytes(each.byte_size)}</small><span class="grow"></span><${Button} kind="link" onClick=${() => takeOut(each)}>${t('remove')}<//></p>`)}
  <//>`
}

/** A chat as a document, to be kept. */
function asMarkdown(title, turns) {
  const said = turns.flatMap((turn) => [[t('role.user'), turn.asked_at, turn.message], [t('role.assistant'), turn.at, turn.answer]]).filter(([, , text]) => text)
  const parts = said.map(([who, at, text]) => `**${who}**${at ? ` · ${dateTime(at)}` : ''}\n\n${text}\n`)
  return new Blob([`# ${title || t('conversation')}\n\n`, parts.join('\n')], { type: 'text/markdown' })
}

function Welcome({ onTry, mayLoad, isNew }) {
  return html`<div class="welcome">
    <h2>${t('welcome.title')}</h2>
    ${isNew && html`<p class="muted">${t('welcome.lead')}</p>
      <ol>${[1, 2, 3].map((n) => html`<li><button type="button" onClick=${() => onTry(t(`welcome.text_${n}`))}><b>${t(`welcome.step_${n}`)}</b><span>${t(`welcome.text_${n}`)}</span></button></li>`)}</ol>`}
    ${mayLoad && html`<p class="demo"><${Button} kind="link" onClick=${loadDemo}>${t('demo.load')}<//></p>`}
  </div>`
}
