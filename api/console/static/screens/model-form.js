// The choice of a model: where it is asked, which of its models answer, and a trial before it is kept.

import { get, Problem, post, put } from '../api.js'
import { known as textOf, milliseconds, number, t } from '../i18n.js'
import { Button, Field, html, messageOf, Select, useLoad, useState } from '../ui.js'

const LOOK_AGAIN_MS = 500
const PATIENCE_MS = 90_000
const MOST_ROWS = 8
const OTHER = 'other'
const NOTHING = { base_url: '', api_key: '', model: '', small_model: '', embedding_model: '', embedding_base_url: '', embedding_api_key: '' }

/** What stands in a new chat while no model is chosen. */
export function Connect({ onChoose }) {
  const known = useLoad(() => get('/api/v1/model'))
  if (known.data?.source !== 'none') return null
  return html`<section class="connect"><h2>${t('connect.title')}</h2><p class="muted">${t('connect.lead')}</p><${ModelForm} known=${known.data} onChoose=${onChoose} /></section>`
}

/** What is wrong with an endpoint or one of its models, by its code. */
const problemOf = ({ code, status, problem }) => textOf(`endpoint.${code}`, { status }) ?? textOf(`failure.${code}`) ?? problem

export function ModelForm({ known, onChoose = () => {} }) {
  const current = known.source === 'console' ? known : null
  const [provider, setProvider] = useState(current && (known.providers.find((each) => each.base_url === known.base_url)?.name ?? OTHER))
  const [given, setGiven] = useState(() => (current ? { ...NOTHING, base_url: known.base_url, model: known.model, small_model: (known.small_model_source === 'console' && known.small_model) || '', embedding_model: (known.embedding_source === 'console' && known.embedding_model) || '', embedding_base_url: (known.embedding_source === 'console' && known.embedding_base_url) || '' } : NOTHING))
  const [models, setModels] = useState([])
  const [sought, setSought] = useState('')
  const [told, setTold] = useState(null)
  const [busy, setBusy] = useState(false)
  const [grading, setGrading] = useState(true)

  const change = (values) => setGiven((before) => ({ ...before, ...values }))
  const put_ = (name) => (event) => change({ [name]: event.target.value })
  const choose = (name) => {
    onChoose()
    setProvider(name)
    setModels([])
    setTold(null)
    change({ ...NOTHING, base_url: known.providers.find((each) => each.name === name)?.base_url ?? '' })
  }
  const address = given.base_url.trim()
  const key = given.api_key.trim()
  const keeps = Boolean(current?.key && address === current.base_url && !key)
  const endpoint = { base_url: address, ...(key ? { api_key: key } : {}), ...(keeps ? { keep_key: true } : {}) }
  const preset = known.providers.find((each) => each.base_url === address)
  const api = preset?.api ?? (address === current?.base_url ? current.api : 'chat')
  const more = Object.fromEntries(['small_model', 'embedding_model'].map((name) => [name, given[name].trim()]).filter(([, name]) => name))
  const elsewhere = more.embedding_model && given.embedding_base_url.trim()
  const itsKey = given.embedding_api_key.trim()
  const keepsIts = Boolean(current?.embedding_key && elsewhere === current.embedding_base_url && !itsKey)
  if (elsewhere) Object.assign(more, { embedding_base_url: elsewhere }, itsKey ? { embedding_api_key: itsKey } : {}, keepsIts ? { keep_embedding_key: true } : {})
  const chosen = { ...endpoint, model: given.model.trim(), api, ...more }
  const complete = Boolean(address && chosen.model)

  const working = async (work) => {
    setBusy(true)
    setTold(null)
    try {
      await work()
    } catch (error) {
      const kept = error instanceof Problem && error.status === 409 ? problemOf({ code: error.code, problem: messageOf(error) }) : messageOf(error)
      setTold({ problem: kept })
    }
    setBusy(false)
  }
  const list = () =>
    working(async () => {
      const offered = await post('/api/v1/model/models', endpoint)
      setModels(offered.models)
      setSought('')
      const chats = offered.models.filter((each) => each.kind === 'chat')
      if (chats.length === 1 && !given.model) change({ model: chats[0].name })
      setTold(offered.problem ? { problem: problemOf(offered) } : { text: t('connect.listed', { n: offered.models.length }) })
    })
  const attempt = () =>
    working(async () => {
      const tried = await post('/api/v1/model/try', chosen)
      setTold(tried.problem ? { problem: t('connect.of_model', { model: tried.model, problem: problemOf(tried) }), detail: tried.detail } : { text: `${tried.answer} · ${milliseconds(tried.milliseconds)}` })
    })
  const keep = () =>
    working(async () => {
      if (grading) setTold({ text: t('grade.checking') })
      await put(`/api/v1/model${grading ? '?grade=true' : ''}`, chosen)
      await used(known, setTold)
    })
  const submit = (event) => {
    event.preventDefault()
    if (complete && !busy) keep()
  }

  return html`<form class="model-form" aria-label=${t('connect.title')} onSubmit=${submit}>
    <div class="providers" role="group" aria-label=${t('connect.provider')}>
      ${[...known.providers.map((each) => each.name), OTHER].map((name) => html`<button type="button" class="button small" aria-pressed=${provider === name} onClick=${() => choose(name)}>${name === OTHER ? t('connect.other') : name}</button>`)}
    </div>
    ${provider && html`
      <${Field} label=${t('connect.address')}><input name="base_url" type="url" required spellcheck="false" value=${given.base_url} onInput=${put_('base_url')} /><//>
      <${Field} label=${t('connect.key')} hint=${keeps && t('connect.key_kept', { key: current.key })}><input name="api_key" type="password" autocomplete="off" spellcheck="false" value=${given.api_key} onInput=${put_('api_key')} /><//>
      <p class="actions"><${Button} onClick=${list} disabled=${busy || !address}>${t('connect.list')}<//></p>
      <${Field} label=${t('connect.model')} hint=${contextOf(models, given.model)}><input name="model" required autocomplete="off" spellcheck="false" value=${given.model} onInput=${(event) => { put_('model')(event); setSought(event.target.value) }} /><//>
      ${models.length > 0 && html`<${Offered} models=${models} value=${given.model} sought=${sought} onPick=${(model) => change({ model })} />`}
      <details class="more-models" open=${Boolean(given.small_model || given.embedding_model)}><summary>${t('connect.more')}</summary>
        <${Another} label=${t('connect.small')} hint=${t('connect.small_hint')} none=${t('connect.same')} kind="chat" models=${models} variable="ANAMNESIS_SMALL_LLM_MODEL" source=${known.small_model_source} value=${given.small_model} onChange=${(small_model) => change({ small_model })} />
        <${Another} label=${t('connect.embedding')} hint=${t('connect.embedding_hint')} none=${t('connect.built_in')} kind="embedding" models=${models} variable="ANAMNESIS_EMBEDDING_MODEL" source=${known.embedding_source} value=${given.embedding_model} onChange=${(embedding_model) => change({ embedding_model })} />
        ${more.embedding_model && html`<${Field} label=${t('connect.embedding_address')} hint=${t('connect.embedding_address_hint')}><input name="embedding_base_url" type="url" spellcheck="false" value=${given.embedding_base_url} onInput=${put_('embedding_base_url')} /><//>`}
        ${elsewhere && html`<${Field} label=${t('connect.embedding_key')} hint=${keepsIts && t('connect.key_kept', { key: current.embedding_key })}><input name="embedding_api_key" type="password" autocomplete="off" spellcheck="false" value=${given.embedding_api_key} onInput=${put_('embedding_api_key')} /><//>`}
      </details>
      ${told?.problem && html`<div class="failure" role="alert"><p>${told.problem}</p>${told.detail && html`<small class="muted">${t('connect.said', { detail: told.detail })}</small>`}</div>`}
      ${told?.text && html`<p class="told" role="status">${told.text}</p>`}
      <label class="check"><input name="grading" type="checkbox" checked=${grading} onChange=${(event) => setGrading(event.target.checked)} /> ${t('grade.first')}</label>
      <p class="actions">
        <${Button} onClick=${attempt} disabled=${busy || !complete}>${t('connect.try')}<//>
        <button class="button primary" disabled=${busy || !complete} aria-busy=${busy}>${t('connect.keep')}</button>
      </p>
      <p class="muted small-text">${complete ? t('connect.tried_first') : t('connect.incomplete')}</p>`}
  </form>`
}

/** The models of the endpoint: those in whose names the text stands that was typed since they were listed. */
function Offered({ models, value, sought, onPick }) {
  const shown = models.filter((each) => each.name.toLowerCase().includes(sought.trim().toLowerCase()))
  if (!shown.length) return html`<p class="muted small-text">${t('connect.none_named')}</p>`
  return html`<select class="offered" size=${Math.max(2, Math.min(MOST_ROWS, shown.length))} aria-label=${t('connect.offered')} onChange=${(event) => onPick(event.target.value)}>
    ${shown.map(({ name, kind, context_tokens }) => html`<option value=${name} selected=${name === value}>${[name, kind !== 'chat' && t(`model_kind.${kind}`), context_tokens && t('connect.tokens', { n: number(context_tokens) })].filter(Boolean).join(' · ')}</option>`)}
  </select>`
}

const contextOf = (models, name) => {
  const found = models.find((each) => each.name === name)
  return found?.context_tokens ? t('connect.context', { n: number(found.context_tokens) }) : null
}

/** A model beside the main one: chosen from the list where there is one, or typed; not where a variable names it. */
function Another({ label, hint, none, kind, models, variable, source, value, onChange }) {
  if (source === 'environment') return html`<p class="muted">${label}: ${t('connect.by_variable', { variable })}</p>`
  const names = [...models.filter((each) => each.kind === kind), ...models.filter((each) => each.kind !== kind)].map((each) => each.name)
  if (value && !names.includes(value)) names.unshift(value)
  return html`<${Field} label=${label} hint=${hint}>
    ${models.length ? html`<${Select} value=${value} onChange=${onChange} options=${[['', none], ...names.map((name) => [name, name])]} />` : html`<input autocomplete="off" spellcheck="false" placeholder=${none} value=${value} onInput=${(event) => onChange(event.target.value)} />`}
  <//>`
}

/** Say that a choice counts, and wait until the service has started again with it. */
export async function used(known, say) {
  if (!known.restarts) return say({ text: t('connect.restart_it') })
  say({ text: t('connect.restarting') })
  const end = Date.now() + PATIENCE_MS
  let was = true
  while (Date.now() < end) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS))
    try {
      await get('/api/v1/service')
      if (!was) break
    } catch {
      was = false // It is starting.
    }
  }
  location.reload()
}
