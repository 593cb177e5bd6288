// Where a message is written: its draft is kept, pictures can be dropped in, Enter sends.

import { get, userPath } from '../api.js'
import { t } from '../i18n.js'
import { withoutDemo } from '../demo.js'
import { DOCUMENTS } from '../screens/parts.js'
import { attempt, Chip, html, Icon, IconButton, Select, toast, useEffect, useLoad, useRef, useState } from '../ui.js'

const MOST_IMAGES = 8
const IMAGE_BYTES = 8 * 1024 * 1024
const KINDS = ['image/png', 'image/jpeg', 'image/gif', 'image/webp']

export function Composer({ draftKey, isNew, underWay, temporary, onTemporary, options, onOptions, onSend, onDocument, onStop, prefill, user, mayRead, hasTalked, longest }) {
  const stored = `anamnesis.draft.${draftKey}`
  const [text, setText] = useState(() => localStorage.getItem(stored) ?? '')
  const [images, setImages] = useState([])
  const [documents, setDocuments] = useState([]) // sent with the next message: {name, state}
  const [over, setOver] = useState(false)
  const area = useRef()
  const file = useRef()
  const choices = useLoad(async () => {
    const [experts, bases] = await Promise.all([get('/api/v1/experts', { limit: 200 }), get('/api/v1/knowledge-bases', { limit: 200 })])
    return { experts: withoutDemo(experts).items, bases: bases.items }
  })

  const [spaces, setSpaces] = useState([])
  const loadSpaces = async () => {
    if (mayRead) setSpaces((await get(userPath(user, 'spaces'))).items.map((each) => each.name))
  }

  useEffect(() => {
    setText(localStorage.getItem(stored) ?? '')
    setImages([])
    setDocuments([])
    area.current.focus({ preventScroll: true })
  }, [draftKey])
  useEffect(() => {
    if (prefill.text) {
      change(prefill.text)
      area.current.focus()
    }
  }, [prefill])
  useEffect(() => {
    area.current.style.height = 'auto'
    area.current.style.height = `${Math.min(area.current.scrollHeight, innerHeight * 0.4)}px`
  }, [text])
  useEffect(() => {
    const focus = (event) => {
      if (event.key === '/' && !/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName) && !document.querySelector('dialog[open]')) {
        event.preventDefault()
        area.current.focus()
      }
    }
    addEventListener('keydown', focus)
    return () => removeEventListener('keydown', focus)
  }, [])

  const change = (value) => {
    setText(value)
    if (value && !temporary) localStorage.setItem(stored, value)
    else localStorage.removeItem(stored)
  }
  const ready = text.trim() && text.length <= longest && !documents.some((each) => each.state === 'running')
  const submit = async (interrupt = false) => {
    if (!ready) return
    const [message, pictures] = [text, images]
    change('')
    setImages([])
    setDocuments([])
    if (!(await onSend(message, { images: pictures.map((each) => each.data), interrupt }))) {
      change(message)
      setImages(pictures)
    }
  }
  const keys = (event) => {
    if (event.isComposing) return
    if (event.key === 'Enter' && !event.shiftKey) {
      event.preventDefault()
      submit(underWay && (event.ctrlKey || event.metaKey))
    } else if (event.key === 'Escape' && underWay) onStop()
  }
  const give = async (file) => {
    const note = (state) => setDocuments((before) => [...before.filter((each) => each.name !== file.name), { name: file.name, state }])
    note('running')
    if (await attempt(() => onDocument(file))) note('done')
    else setDocuments((before) => before.filter((each) => each.name !== file.name))
  }
  const attach = async (files) => {
    const pictures = [...files].filter((each) => each.type.startsWith('image/'))
    const others = [...files].filter((each) => !pictures.includes(each))
    if (others.length && temporary) toast(t('documents.not_temporary'), { kind: 'bad' })
    else others.forEach(give)
    const room = MOST_IMAGES - images.length
    const good = pictures.filter((each) => KINDS.includes(each.type) && each.size <= IMAGE_BYTES).slice(0, room)
    if (good.length < pictures.length) toast(t('image_refused'), { kind: 'bad' })
    const read = await Promise.all(good.map(async (each) => ({ name: each.name, data: await dataUrl(each) })))
    setImages((before) => [...before, ...read])
  }
  const drop = (event) => {
    event.preventDefault()
    setOver(false)
    attach(event.dataTransfer.files)
  }
  const paste = (event) => {
    const files = [...event.clipboardData.files]
    if (files.length) {
      event.preventDefault()
      attach(files)
    }
  }

  const experts = choices.data?.experts ?? []
  const bases = choices.data?.bases ?? []
  return html`<div class=${`composer${over ? ' over' : ''}${temporary ? ' temporary' : ''}`} onDragOver=${(event) => { event.preventDefault(); setOver(true) }} onDragLeave=${() => setOver(false)} onDrop=${drop}>
    ${images.length > 0 && html`<div class="attached">${images.map((image, place) => html`<span key=${image.data.length}><img src=${image.data} alt=${image.name} /><${IconButton} icon="close" label=${t('remove')} onClick=${() => setImages(images.filter((_, n) => n !== place))} /></span>`)}</div>`}
    ${documents.length > 0 && html`<div class="row given">${documents.map((each) => html`<${Chip} key=${each.name} kind=${each.state === 'done' ? 'good' : ''}>${each.state === 'running' && html`<span class="spinner" role="status" aria-label=${t('running')}></span> `}${each.name}<//>`)}</div>`}
    <textarea ref=${area} rows="1" dir="auto" value=${text} placeholder=${temporary ? t('message_temporary') : t('message')} aria-label=${t('message')} onInput=${(event) => change(event.target.value)} onKeyDown=${keys} onPaste=${paste}></textarea>
    <div class="row">
      <input ref=${file} type="file" hidden multiple accept=${[...KINDS, DOCUMENTS].join(',')} onChange=${(event) => { attach(event.target.files); event.target.value = '' }} />
      <${IconButton} icon="clip" label=${t('attach')} onClick=${() => file.current.click()} />
      ${isNew && onTemporary && html`<${IconButton} icon="ghost" label=${t('temporary')} aria-pressed=${temporary} onClick=${() => onTemporary(!temporary)} />`}
      ${isNew && !temporary && html`<input class="space" list="spaces" placeholder=${t('space')} aria-label=${t('space')} title=${t('space_hint')} value=${options.space ?? ''} onFocus=${() => hasTalked && attempt(loadSpaces)} onInput=${(event) => onOptions({ ...options, space: event.target.value.trim() })} /><datalist id="spaces">${spaces.map((name) => html`<option value=${name} />`)}</datalist>`}
      ${isNew && experts.length > 1 && html`<${Select} aria-label=${t('expert')} value=${options.expert ?? 'default'} onChange=${(expert) => onOptions({ ...options, expert })} options=${experts.map((each) => [each.name, each.name])} />`}
      ${bases.length > 0 && html`<${Select} aria-label=${t('knowledge_base')} value=${options.base ?? ''} onChange=${(base) => onOptions({ ...options, base })} options=${[['', t('any_base')], ...bases.map((each) => [each.prefix, each.prefix])]} />`}
      <span class="grow"></span>
      ${text.length > longest * 0.9 && html`<small class=${text.length > longest ? 'bad' : 'muted'}>${text.length} / ${longest}</small>`}
      ${underWay && html`<button type="button" class="round stop" aria-label=${t('stop')} title=${t('stop_key')} onClick=${onStop}><${Icon} name="stop" /></button>`}
      ${(!underWay || ready) && html`<button type="button" class="round" aria-label=${underWay ? t('queue') : t('send')} title=${underWay ? t('queue_key') : t('send_key')} disabled=${!ready} onClick=${() => submit()}><${Icon} name="send" /></button>`}
    </div>
  </div>`
}

const dataUrl = (file) =>
  new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve(reader.result)
    reader.onerror = () => reject(reader.error)
    reader.readAsDataURL(file)
  })
