// Small parts that several screens share.

import { get, send } from '../api.js'
import { withoutDemo } from '../demo.js'
import { t } from '../i18n.js'
import { html, Select, useEffect, useLoad, useState } from '../ui.js'

/** Whose memory of the user is shown; nothing to choose where there is one expert. */
export function ChooseExpert({ value, onChange, every = false }) {
  const experts = useLoad(() => get('/api/v1/experts', { limit: 200 }).then(withoutDemo))
  const names = experts.data?.items.map((each) => each.name) ?? []
  if (names.length < 2) return null
  return html`<${Select} aria-label=${t('expert')} value=${value} onChange=${onChange} options=${[...(every ? [['', t('every_expert')]] : []), ...names.map((name) => [name, name])]} />`
}

/** Draw again every few seconds while something is under way and the page is seen. */
export function useRefresh(reload, active, seconds = 3) {
  useEffect(() => {
    if (!active) return undefined
    const timer = setInterval(() => document.hidden || reload(), seconds * 1000)
    return () => clearInterval(timer)
  }, [active, reload])
}

/** Fields of a form as one object: `[values, set(name), replace]`. */
export function useForm(initial) {
  const [values, replace] = useState(initial)
  const set = (name) => (event) => replace((before) => ({ ...before, [name]: event?.target ? (event.target.type === 'checkbox' ? event.target.checked : event.target.value) : event }))
  return [values, set, replace]
}

/** What a memory says; of a turn each message under who said it. */
export function Said({ text, most = Infinity }) {
  const shown = text.length > most ? `${text.slice(0, most)}…` : text
  const parts = shown.split(/^(user|assistant): /m)
  if (parts.length === 1) return html`<p>${shown}</p>`
  const messages = []
  for (let n = 1; n < parts.length; n += 2) messages.push(html`<div class="said-line"><b>${t(`role.${parts[n]}`)}</b>${parts[n + 1].trim()}</div>`)
  return html`<div class="said-lines">${parts[0].trim()}${messages}</div>`
}

const KINDS = { md: 'text/markdown', markdown: 'text/markdown', txt: 'text/plain', html: 'text/html', htm: 'text/html', pdf: 'application/pdf', docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document' }
export const DOCUMENTS = '.md,.markdown,.txt,.html,.htm,.pdf,.docx,.xlsx,.csv,.tsv'

/** Send a file as a document to where documents are taken; answers what became of it. */
export const sendDocument = (path, file) =>
  send('POST', path, { query: { source: file.name }, body: file, headers: { 'Content-Type': KINDS[file.name.split('.').pop().toLowerCase()] ?? 'application/octet-stream' } })

export const lines = (text) => text.split('\n').map((line) => line.trim()).filter(Boolean)
