// One turn: the message, the tools as they run, the answer as it comes, and what can be done with both.

import { get, post, remove, userPath } from '../api.js'
import { currentLanguage, known as textOf, milliseconds, t, time, word } from '../i18n.js'
import { linkCitations, Markdown, showMarkdown } from '../markdown.js'
import { attempt, Button, Chip, Dialog, html, Icon, IconButton, Loaded, Original, toast, useEffect, useLoad, useRef, useState } from '../ui.js'
import { isUnderWay } from './conversation.js'

const SAYS_MORE = 30 // characters by which the service's own words are longer than ours where they add something

export function Turn({ turn, conversation, place, may, onWhy, onEdit, onRegenerate, onCompare }) {
  const [editing, setEditing] = useState(false)
  const versions = turn.id ? conversation.versions(place) : []
  const busy = conversation.underWay
  const [source, setSource] = useState(null) // of the answer, whose passage is shown
  const onSource = may('memory:read') && !conversation.temporary ? setSource : null
  return html`<article class="turn" aria-label=${t('turn_of', { time: time(turn.asked_at) })}>
    ${(turn.message || turn.images.length > 0) && html`<div class="said">
      ${editing
        ? html`<${Edit} text=${turn.message} onCancel=${() => setEditing(false)} onSend=${(text) => { setEditing(false); onEdit(turn, text) }} />`
        : html`<div class="bubble">${turn.images.map((image) => html`<${Shown} image=${image} />`)}${turn.message}</div>`}
      ${!editing && html`<div class="tools-row">
        <${Versions} versions=${versions} current=${turn.id} conversation=${conversation} disabled=${busy} onCompare=${() => onCompare(place)} />
        <${IconButton} icon="copy" label=${t('copy')} onClick=${() => copy(turn.message)} />
        ${turn.id && !turn.imported && !conversation.temporary && html`<${IconButton} icon="edit" label=${t('edit')} disabled=${busy} onClick=${() => setEditing(true)} />`}
      </div>`}
    </div>`}
    <div class="answered">
      ${turn.tools.length > 0 && html`<ul class="tool-calls">${turn.tools.map((tool) => html`<${Tool} key=${tool.id} tool=${tool} turn=${turn} user=${conversation.user} />`)}</ul>`}
      <${Status} turn=${turn} />
      ${isUnderWay(turn) ? html`<${Streaming} key="live" turn=${turn} />` : turn.answer && html`<${Answer} key="whole" turn=${turn} onSource=${onSource} />`}
      ${turn.error && html`<${Failed} turn=${turn} may=${may} onAgain=${busy ? null : () => onRegenerate(turn)} />`}
      <${Notes} turn=${turn} user=${conversation.user} may=${may} onSource=${onSource} />
      ${source !== null && html`<${Passage} turn=${turn} place=${source} onClose=${() => setSource(null)} />`}
      ${!isUnderWay(turn) && html`<div class="tools-row">
        ${turn.answer && html`<${IconButton} icon="copy" label=${t('copy')} onClick=${() => copy(turn.answer)} />`}
        ${turn.id && !turn.imported && !conversation.temporary && html`
          ${(!turn.error || turn.status === 'cancelled') && html`<${IconButton} icon="redo" label=${t('regenerate')} disabled=${busy} onClick=${() => onRegenerate(turn)} />`}
          ${turn.answer && html`<${Rating} turn=${turn} />`}
          ${may('memory:read') && html`<button type="button" class="why-button" onClick=${() => onWhy(turn)}><${Icon} name="why" />${t('why')}</button>`}`}
        ${turn.timings?.total_ms && html`<span class="cost" title=${t('first_token', { time: milliseconds(turn.timings.first_token_ms ?? 0) })}>${milliseconds(turn.timings.total_ms)}</span>`}
      </div>`}
    </div>
  </article>`
}

/** Text that grows is written by the renderer itself, and nothing else is drawn again for it. */
function Streaming({ turn }) {
  const root = useRef()
  useEffect(() => {
    const markdown = new Markdown(root.current)
    markdown.push(turn.answer)
    turn.onText = (text) => markdown.push(text)
    return () => {
      turn.onText = null
    }
  }, [turn])
  return html`<div class="prose streaming" ref=${root} aria-live="polite" aria-busy="true"></div>`
}

function Answer({ turn, onSource }) {
  const root = useRef()
  useEffect(() => {
    showMarkdown(root.current, turn.answer)
    if (turn.sources.length) {
      linkCitations(root.current, turn.sources.length, (n) => onSource?.(n))
    }
  }, [turn.answer, turn.sources])
  return html`<div class="prose" dir="auto" ref=${root}></div>`
}

function Status({ turn }) {
  if (!isUnderWay(turn)) return null
  if (turn.lost) return html`<p class="status">${t('connection_lost')}</p>`
  if (turn.answer) return null
  const text = turn.filler ?? (turn.status === 'waiting' ? t('waiting') : t('thinking'))
  return html`<p class="status"><span class="dots" aria-hidden="true"><i></i><i></i><i></i></span>${text}</p>`
}

/** A call that changes something waits for the user, who sees all of it. */
function Approval({ tool, turn }) {
  const [answered, setAnswered] = useState(false)
  if (!tool.approval || !tool.running || answered) return null
  const answer = (approved) =>
    attempt(async () => {
      await post(`/api/v1/turns/${turn.id}/approve`, { approval_id: tool.approval.approval_id, approved })
      setAnswered(true)
    })
  return html`<div class="approval" role="alertdialog" aria-label=${t('approval.title')}>
    <p>${t('approval.ask', { tool: word('tool', tool.name) })}</p>
    <pre class="result" tabindex="0">${JSON.stringify(tool.arguments, null, 2)}</pre>
    <div class="row end"><${Button} onClick=${() => answer(false)}>${t('approval.no')}<//><${Button} kind="primary" onClick=${() => answer(true)}>${t('approval.yes')}<//></div>
  </div>`
}

/** The user agrees in another window that their account is used. */
function Connect({ tool, user }) {
  if (!tool.connect) return null
  const { server } = tool.connect
  const open = async () => {
    const page = window.open('', '_blank') // now, as browsers block what opens later
    if (page) page.opener = null
    await attempt(async () => {
      try {
        // This browser is asked for, and so it is known when it comes back.
        const asked = await get(`/api/v1/mcp/${encodeURIComponent(server)}/connect`, { user_id: user })
        if (!/^https?:/.test(asked.authorization_url)) throw new Error(asked.authorization_url)
        if (page) page.location = asked.authorization_url
        else location.assign(asked.authorization_url)
      } catch (error) {
        page?.close()
        throw error
      }
    })
  }
  return html`<p class="approval"><${Button} kind="primary small" onClick=${open}>${t('connect.account', { server })}<//></p>`
}

function Tool({ tool, turn, user }) {
  const words = Object.values(tool.arguments ?? {}).map((value) => (typeof value === 'string' ? value : JSON.stringify(value))).join(' · ')
  const result = tool.ok === false ? tool.error : typeof tool.result === 'string' ? tool.result : JSON.stringify(tool.result)
  return html`<li><details>
    <summary><${Icon} name="tool" /><b>${word('tool', tool.name)}</b><span class="muted clip">${words}</span>
      ${tool.running ? html`<span class="spinner" role="status" aria-label=${t('running')}></span>` : html`<small class=${tool.ok === false ? 'bad' : 'muted'}>${tool.ok === false ? t('failed') : milliseconds(tool.duration_ms)}</small>`}
    </summary>
    ${result && html`<pre class="result" tabindex="0">${result}</pre>`}
  </details><${Approval} tool=${tool} turn=${turn} /><${Connect} tool=${tool} user=${user} /></li>`
}

function Failed({ turn, may, onAgain }) {
  if (turn.status === 'cancelled') return html`<p class="status">${t('stopped')}</p>`
  const said = textOf(`failure.${turn.error.code}`)
  const more = turn.error.message?.length > (said?.length ?? 0) + SAYS_MORE
  return html`<div class="failure" role="alert"><p>${said ?? (currentLanguage() === 'en' ? turn.error.message : t('problem.other'))}</p>${(said || currentLanguage() !== 'en') && more && html`<${Original} text=${turn.error.message} />`}
    ${may('admin') && turn.error.code?.startsWith('llm_') && html`<a href="#/model">${t('model.change')}</a>`}
    ${onAgain && html`<button type="button" class="button quiet small" onClick=${onAgain}>${t('try_again')}</button>`}</div>`
}

/** What came of the turn beside its words: changes of memory, sources, and what it had to go without. */
function Notes({ turn, user, may, onSource }) {
  return html`
    ${turn.changes.map((change) => html`<${Change} key=${change.operation_id} change=${change} answer=${turn.answer} user=${user} may=${may} />`)}
    ${turn.sources.length > 0 && html`<ol class="sources" aria-label=${t('sources')}>
      ${turn.sources.map((source, n) => html`<li><button type="button" class="link" disabled=${!onSource} onClick=${() => onSource(n)}>${source.document}</button>${source.heading && html` <span class="muted">› ${source.heading}</span>`}${source.page && html` <span class="muted">${t('page', { n: source.page })}</span>`}</li>`)}
    </ol>`}
    ${turn.degraded.length > 0 && html`<p class="degraded">${t('went_without', { what: turn.degraded.map((name) => word('degraded', name)).join(t('list_separator')) })}</p>`}`
}

/** The passage of a document that an answer was given, in its own words. */
function Passage({ turn, place, onClose }) {
  const why = useLoad(() => get(`/api/v1/turns/${turn.id}/why`), [turn.id])
  const { document, heading, page } = turn.sources[place]
  const text = why.data?.sources[place]?.text
  return html`<${Dialog} side title=${document} onClose=${onClose}>
    <p class="muted">${[heading, page && t('page', { n: page })].filter(Boolean).join(' · ')}</p>
    <${Loaded} of=${why}>${why.data && (text ? html`<p class="passage" dir="auto">${text}</p>` : html`<p class="muted">${t('why.gone')}</p>`)}<//>
  <//>`
}

function Change({ change, answer, user, may }) {
  const [undone, setUndone] = useState(Boolean(change.operation?.undone_at))
  const undo = async () => {
    await post(userPath(user, 'memory-operations', change.operation_id, 'undo'))
    setUndone(true)
  }
  return html`<div class=${undone ? 'change undone' : 'change'}>
    <${Icon} name="spark" /><span>${change.operation ? told(change.operation) : answer.includes(change.summary) ? t('why.changed') : change.summary.replace(IDS, '')}</span>
    ${undone ? html`<${Chip}>${t('undone')}<//>` : change.operation_id && may('memory:write') && html`<${Button} kind="link" onClick=${undo}>${t('undo')}<//>`}
  </div>`
}

const IDS = / ?[（(][0-9a-f]{8}-[0-9a-f-]{27}[)）]/g // of memories, for the model that has to choose one
const ADDS = /^(core_memory_(insert|update|change)|episode_insert)$/

/** What an operation did: what is remembered from it, or its name. */
function told(operation) {
  const what = noted(operation)
  if (what && ADDS.test(operation.type)) return t('noted', { what })
  return word('operation', operation.type) + (what ? `: ${what}` : '')
}

export const brief = (value) =>
  typeof value === 'string' ? value : Array.isArray(value) ? value.map(brief).join(t('list_separator')) : value && typeof value === 'object' ? Object.entries(value).map(([key, each]) => `${word('field', key)}: ${brief(each)}`).join('; ') : String(value ?? '')

/** What an operation added, in words. */
export function noted({ type, old_value: old, new_value: value, query, field }) {
  if (type === 'memory_command') return query ?? ''
  if (type === 'memory_proposal' || type === 'promise') return value?.text ?? ''
  if (type === 'episode_insert') return brief(value?.content ?? value)
  const before = old && typeof old === 'object' ? old : {}
  const news = Object.entries(value && typeof value === 'object' ? value : {}).filter(([key, each]) => JSON.stringify(before[key]) !== JSON.stringify(each))
  return news.map(([key, each]) => {
    const added = Array.isArray(each) && Array.isArray(before[key]) ? each.filter((one) => !before[key].some((other) => JSON.stringify(other) === JSON.stringify(one))) : each
    return `${word('field', key)}: ${brief(added)}`
  }).join('; ') || (field ?? '')
}

function Rating({ turn }) {
  const [rating, setRating] = useState(turn.feedback)
  const rate = (wanted) =>
    attempt(async () => {
      const path = `/api/v1/turns/${turn.id}/feedback`
      if (rating === wanted) await remove(path)
      else await post(path, { rating: wanted })
      turn.feedback = rating === wanted ? null : wanted
      setRating(turn.feedback)
    })
  return html`<${IconButton} icon="thumbup" label=${t('good_answer')} aria-pressed=${rating === 'up'} onClick=${() => rate('up')} /><${IconButton} icon="thumbdown" label=${t('bad_answer')} aria-pressed=${rating === 'down'} onClick=${() => rate('down')} />`
}

function Versions({ versions, current, conversation, disabled, onCompare }) {
  if (versions.length < 2) return null
  const at = versions.findIndex((version) => version.id === current)
  const to = (step) => attempt(() => conversation.switchTo(versions[at + step].branch))
  return html`<span class="versions"><${IconButton} icon="left" label=${t('version_before')} disabled=${disabled || at === 0} onClick=${() => to(-1)} />${at + 1}/${versions.length}<${IconButton} icon="right" label=${t('version_after')} disabled=${disabled || at === versions.length - 1} onClick=${() => to(1)} /><${IconButton} icon="columns" label=${t('compare.open')} disabled=${disabled} onClick=${onCompare} /></span>`
}

function Edit({ text, onCancel, onSend }) {
  const [value, setValue] = useState(text)
  const keys = (event) => {
    if (event.key === 'Escape') onCancel()
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing && value.trim()) {
      event.preventDefault()
      onSend(value)
    }
  }
  return html`<div class="edit"><textarea rows=${Math.min(10, value.split('\n').length + 1)} value=${value} aria-label=${t('edit')} onInput=${(event) => setValue(event.target.value)} onKeyDown=${keys} ref=${(node) => node && document.activeElement !== node && node.dataset.seen !== '1' && ((node.dataset.seen = '1'), node.focus())}></textarea>
    <div class="row end"><button type="button" class="button quiet" onClick=${onCancel}>${t('cancel')}</button><button type="button" class="button primary" disabled=${!value.trim()} onClick=${() => onSend(value)}>${t('send')}</button></div></div>`
}

/** Only pictures that are part of the message are loaded; one of another host is a link. */
const Shown = ({ image }) =>
  image.startsWith('data:') ? html`<img src=${image} alt=${t('image')} />` : html`<a href=${image} target="_blank" rel="noopener noreferrer nofollow">${image}</a>`

const copy = (text) =>
  attempt(async () => {
    await navigator.clipboard.writeText(text)
    toast(t('copied'))
  })
