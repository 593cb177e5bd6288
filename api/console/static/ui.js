// What every screen is built of.

import { Component, html, useCallback, useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from './vendor/preact.js'
import { Problem } from './api.js'
import { ago, currentLanguage, dateTime, known, t } from './i18n.js'

export { Component, html, useCallback, useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState }

const ICONS = {
  add: 'M12 5v14M5 12h14', back: 'M15 5l-7 7 7 7', chat: 'M4 5h16v11H9l-5 4z', check: 'M5 12.5l4.5 4.5L19 7', clip: 'M19 11l-7.5 7.5a4.2 4.2 0 01-6-6l8-8a2.8 2.8 0 014 4l-8 8a1.4 1.4 0 01-2-2l7-7',
  clock: 'M12 7v5l3.5 2M21 12a9 9 0 11-18 0 9 9 0 0118 0z', close: 'M6 6l12 12M18 6L6 18',
  columns: 'M4 5h7v14H4zM13 5h7v14h-7z', copy: 'M9 9h10v11H9zM15 9V4H5v11h4', down: 'M6 9l6 6 6-6', download: 'M12 4v11M7 10.5l5 5 5-5M5 20h14', edit: 'M4 20h4L19 9l-4-4L4 16zM13 7l4 4',
  experts: 'M12 12a4 4 0 100-8 4 4 0 000 8zM4 20c1-4 4-6 8-6s7 2 8 6', file: 'M6 3h8l4 4v14H6zM14 3v4h4',
  flask: 'M9 3h6M10 3v6L4.5 19a1.5 1.5 0 001.4 2h12.2a1.5 1.5 0 001.4-2L14 9V3M7.5 15h9',
  sliders: 'M4 7h9M17 7h3M4 17h3M11 17h9M15 4.5v5M9 14.5v5',
  help: 'M4 5h6a2 2 0 012 2v13a2 2 0 00-2-2H4zM20 5h-6a2 2 0 00-2 2v13a2 2 0 012-2h6z',
  ghost: 'M5 21V10a7 7 0 0114 0v11l-2.4-2-2.3 2-2.3-2-2.3 2-2.3-2zM9.5 10v1M14.5 10v1',
  heart: 'M3 12h4l2-6 4 12 2.5-6H21', key: 'M14 10a4 4 0 10-3.5 4L12 12.5V15h2.5v2.5H17V20h3v-3z',
  left: 'M14 6l-6 6 6 6', log: 'M5 6h14M5 12h14M5 18h9', memory: 'M12 4c-5 0-8 1.3-8 3v10c0 1.7 3 3 8 3s8-1.3 8-3V7c0-1.7-3-3-8-3zM4 7c0 1.7 3 3 8 3s8-1.3 8-3M4 12c0 1.7 3 3 8 3s8-1.3 8-3',
  menu: 'M4 7h16M4 12h16M4 17h16', more: 'M6 12h.01M12 12h.01M18 12h.01', pin: 'M9 4h6l-1 6 3 3H7l3-3zM12 13v7', person: 'M12 3l8 4v5c0 5-3.5 8-8 9-4.5-1-8-4-8-9V7z',
  redo: 'M20 11a8 8 0 10-2.3 6.3M20 5v6h-6', right: 'M10 6l6 6-6 6', search: 'M11 18a7 7 0 100-14 7 7 0 000 14zM16 16l4.5 4.5',
  send: 'M12 19V5M6 11l6-6 6 6', stop: 'M8 8h8v8H8z', spark: 'M12 3v5M12 16v5M3 12h5M16 12h5M6 6l3 3M15 15l3 3M18 6l-3 3M9 15l-3 3',
  thumbdown: 'M7 4h10l3 8v2h-6v5.5L12.5 21 7 13zM7 4H4v9h3', thumbup: 'M7 20h10l3-8v-2h-6V4.5L12.5 3 7 11zM7 20H4v-9h3',
  tool: 'M14 6a4 4 0 015-1l-3 3 1 2 2 1 3-3a4 4 0 01-6 5l-8 8-3-3 8-8a4 4 0 011-4z', trash: 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13',
  undo: 'M9 7L4 12l5 5M4 12h10a6 6 0 010 12', users: 'M9 11a3.5 3.5 0 100-7 3.5 3.5 0 000 7zM3 20c.5-4 3-6 6-6s5.5 2 6 6M16 4.5a3.5 3.5 0 010 6.5M17 14.5c2.3.5 3.7 2.5 4 5.5',
  why: 'M12 21a9 9 0 100-18 9 9 0 000 18zM9.5 9.5a2.5 2.5 0 113.6 2.2c-.8.4-1.1 1-1.1 1.8M12 16.8v.01',
}

export const Icon = ({ name }) => html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d=${ICONS[name]} /></svg>`

export const IconButton = ({ icon, label, ...rest }) =>
  html`<button type="button" class="icon-button" aria-label=${label} title=${label} ...${rest}><${Icon} name=${icon} /></button>`

/** A button whose work takes time: it cannot be pressed twice, and what fails is shown. */
export function Button({ onClick, kind = '', children, ...rest }) {
  const [busy, setBusy] = useState(false)
  const press = async (event) => {
    setBusy(true)
    await attempt(() => onClick(event))
    setBusy(false)
  }
  return html`<button type="button" class=${`button ${kind}`} ...${rest} disabled=${busy || rest.disabled} aria-busy=${busy} onClick=${press}>${children}</button>`
}

/** Load what a screen shows; again when `inputs` change. */
export function useLoad(load, inputs = []) {
  const [state, setState] = useState({ data: undefined, error: null, loading: true })
  const latest = useRef(0)
  const run = useCallback(async () => {
    const call = ++latest.current
    setState((before) => ({ ...before, loading: true, error: null }))
    try {
      const data = await load()
      if (call === latest.current) setState({ data, error: null, loading: false })
    } catch (error) {
      if (!(error instanceof Problem)) console.error(error)
      if (call === latest.current && error.name !== 'AbortError') setState({ data: undefined, error, loading: false })
    }
  }, inputs)
  useEffect(() => {
    run()
    return () => void latest.current++
  }, [run])
  return { ...state, reload: run, setData: (data) => setState({ data, error: null, loading: false }) }
}

/** A list that grows page by page: `fetchPage(after)` answers `{items, next}`. */
export function usePages(fetchPage, inputs = []) {
  const { data, error, loading, reload, setData } = useLoad(() => fetchPage(undefined), inputs)
  const shown = useRef()
  shown.current = data
  const more = async () => {
    const page = await fetchPage(data.next)
    if (shown.current === data) setData({ ...page, items: [...data.items, ...page.items] })
  }
  return { items: data?.items, data, error, loading, reload, setData, more: data?.next ? more : null }
}

export function Loaded({ of, children, rows = 4, empty = null, emptyText = '' }) {
  if (of.error) return html`<${Failure} error=${of.error} retry=${of.reload} />`
  if (of.data === undefined) return html`<${Skeleton} rows=${rows} />`
  const items = of.data?.items ?? of.data
  if (empty && Array.isArray(items) && !items.length) return html`<${Empty} title=${empty}>${emptyText}<//>`
  return children
}

export const More = ({ of }) => of.more && html`<div class="more"><${Button} kind="quiet" onClick=${of.more}>${t('load_more')}<//></div>`

export const Skeleton = ({ rows = 4 }) =>
  html`<div class="skeleton" role="status" aria-label=${t('loading')}>${Array.from({ length: rows }, (_, n) => html`<span style=${{ width: `${92 - ((n * 29) % 48)}%` }}></span>`)}</div>`

export const Empty = ({ title, children }) => html`<div class="empty"><h2>${title}</h2>${children && html`<p>${children}</p>`}</div>`

/** What went wrong: in English in the service's own words, in another language by its code. */
export function messageOf(error) {
  if (!(error instanceof Problem)) return t('error.defect')
  if (error.status === 0) return t('error.unreachable')
  if (error.status === 403) return t('error.forbidden', { detail: currentLanguage() === 'en' ? error.message : '' }).trim()
  const fieldOf = (name) => known(`input.${name.split('.').pop()}`) ?? (currentLanguage() === 'en' ? name : t('input.other'))
  if (currentLanguage() === 'en') {
    const [, field, reason] = /^([\w.]+): (.*)$/s.exec(error.message) ?? []
    if (error.code === 'invalid_input' && field) return t('problem.invalid_input', { field: fieldOf(field), reason })
    return error.message || textOf(error.code)
  }
  if (error.code === 'invalid_input') {
    const reasons = error.reasons.length ? error.reasons : [{ field: '', code: 'other', limits: {} }]
    return reasons.map(({ field, code, limits }) => t('problem.invalid_input', { field: fieldOf(field), reason: reasonOf(field, code, limits) })).join(' ')
  }
  return textOf(error.code)
}

/** Why a field is not accepted: by the code, or where that says little by what the field takes. */
const reasonOf = (field, code, limits) =>
  (code === 'other' || code === 'string_pattern_mismatch' ? known(`expects.${field.split('.').pop()}`) : null) ?? known(`invalid.${code}`, limits) ?? t('invalid.other')

const textOf = (code) => known(`problem.${code}`) ?? known(`failure.${code}`) ?? known(`endpoint.${code}`) ?? t('problem.other')

/** Words of the service that have no code: as they are in English, folded away in another language. */
export const Original = ({ text }) =>
  !text ? null : currentLanguage() === 'en' ? html`<small class="muted">${text}</small>` : html`<details class="original"><summary>${t('original')}</summary><small lang="en">${text}</small></details>`

export const Failure = ({ error, retry }) => html`
  <div class="failure" role="alert">
    <p>${messageOf(error)}</p>
    ${error instanceof Problem && currentLanguage() !== 'en' && html`<${Original} text=${error.message} />`}
    ${retry && error.status !== 403 && html`<${Button} kind="quiet" onClick=${retry}>${t('try_again')}<//>`}
  </div>`

const toasts = Object.assign(new EventTarget(), { shown: [], dialogs: 0 })

function changeToasts(values) {
  Object.assign(toasts, values)
  toasts.dispatchEvent(new Event('change'))
}

const dropToast = (gone) => changeToasts({ shown: toasts.shown.filter((each) => each !== gone) })

/** Say something for a few seconds; `action` is `{label, run}`. */
export function toast(text, { action, kind = '', original = '' } = {}) {
  const made = { text, action, kind, original, key: Math.random() }
  changeToasts({ shown: [...toasts.shown, made] })
  setTimeout(() => dropToast(made), action ? 9000 : 5000)
}

/** Run what may fail; show the failure, and answer whether it went well. */
export async function attempt(run) {
  try {
    await run()
    return true
  } catch (error) {
    if (error.name === 'AbortError') return false
    if (!(error instanceof Problem)) console.error(error)
    toast(messageOf(error), { kind: 'bad', original: error instanceof Problem ? error.message : '' })
    return false
  }
}

/** The toasts: in the newest dialog where one is open, as all else is inert then. */
export function Toasts({ level = 0 }) {
  const [, draw] = useReducer((count) => count + 1, 0)
  useEffect(() => {
    toasts.addEventListener('change', draw)
    return () => toasts.removeEventListener('change', draw)
  }, [])
  const act = (each) => {
    dropToast(each)
    attempt(each.action.run)
  }
  return html`<div class="toasts" role="status">
    ${level === toasts.dialogs && toasts.shown.map((each) => html`<div key=${each.key} class=${`toast ${each.kind}`}>${each.text}${each.original && currentLanguage() !== 'en' && html`<${Original} text=${each.original} />`}${each.action && html`<button type="button" class="link" onClick=${() => act(each)}>${each.action.label}</button>`}</div>`)}
  </div>`
}

/** A native dialog; `side` makes it a drawer. */
export function Dialog({ title, onClose, children, side = false, wide = false }) {
  const ref = useRef()
  const [level, setLevel] = useState(null)
  useEffect(() => {
    const dialog = ref.current
    dialog.showModal()
    changeToasts({ dialogs: toasts.dialogs + 1 })
    setLevel(toasts.dialogs)
    return () => {
      dialog.close()
      changeToasts({ dialogs: toasts.dialogs - 1 })
    }
  }, [])
  const cancel = (event) => {
    event.preventDefault()
    onClose()
  }
  return html`<dialog ref=${ref} class=${side ? 'drawer' : wide ? 'wide' : ''} aria-label=${title} onCancel=${cancel} onClick=${(event) => event.target === ref.current && onClose()}>
    <div class="dialog-body">
      <header><h2>${title}</h2><${IconButton} icon="close" label=${t('close')} onClick=${onClose} /></header>
      ${children}
    </div>
    <${Toasts} level=${level} />
  </dialog>`
}

/** What a dialog asks for, sent by Enter as well; `missing` says what is not given yet. */
export function Form({ action, onSubmit, onClose, kind = 'primary', missing = null, children }) {
  const [busy, setBusy] = useState(false)
  const submit = async (event) => {
    event.preventDefault()
    if (busy || missing) return
    setBusy(true)
    await attempt(onSubmit)
    setBusy(false)
  }
  return html`<form noValidate onSubmit=${submit}>
    ${children}
    <footer>${missing && html`<small class="muted grow">${missing}</small>`}<button type="button" class="button quiet" onClick=${onClose}>${t('cancel')}</button><button type="submit" autofocus class=${`button ${kind}`} disabled=${busy || Boolean(missing)} aria-busy=${busy}>${action}</button></footer>
  </form>`
}

/** Ask before something is done; `children` say what is affected. */
export function Confirm({ title, action, onConfirm, onClose, kind = 'danger', missing, children }) {
  const confirm = async () => {
    await onConfirm()
    onClose()
  }
  return html`<${Dialog} title=${title} onClose=${onClose}><${Form} action=${action} kind=${kind} missing=${missing} onSubmit=${confirm} onClose=${onClose}>${children}<//><//>`
}

export const Page = ({ title, lead, actions, children }) => html`
  <div class="page">
    <header class="page-head"><div><h1>${title}</h1>${lead && html`<p class="lead">${lead}</p>`}</div>${actions && html`<div class="actions">${actions}</div>`}</header>
    ${children}
  </div>`

export const Field = ({ label, hint, required, children }) =>
  html`<label class="field"><span>${label}${required && html`<span class="muted"> ${t('required')}</span>`}</span>${children}${hint && html`<small>${hint}</small>`}</label>`

export const Select = ({ value, onChange, options, ...rest }) => html`
  <select value=${value} onChange=${(event) => onChange(event.target.value)} ...${rest}>
    ${options.map(([key, label]) => html`<option value=${key} selected=${key === value}>${label}</option>`)}
  </select>`

export const When = ({ at }) => (at ? html`<time datetime=${at} title=${dateTime(at)}>${ago(at)}</time>` : html`<span class="muted">–</span>`)

export const Chip = ({ kind = '', children, ...rest }) => html`<span class=${`chip ${kind}`} ...${rest}>${children}</span>`

export const Meter = ({ value, label }) =>
  html`<span class="meter" role="img" aria-label=${label}><i style=${{ width: `${Math.round(Math.min(1, Math.max(0, value)) * 100)}%` }}></i></span>`

export const Tabs = ({ value, onChange, options }) => html`
  <div class="tabs" role="tablist">
    ${options.map(([key, label]) => html`<button type="button" role="tab" aria-selected=${key === value} onClick=${() => onChange(key)}>${label}</button>`)}
  </div>`

/** The value of an input, half a second after the last key. */
export function useSettled(value, wait = 350) {
  const [settled, setSettled] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), wait)
    return () => clearTimeout(timer)
  }, [value, wait])
  return settled
}
