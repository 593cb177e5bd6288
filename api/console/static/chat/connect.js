// The first start: which model answers. It is kept in the data folder, and the service starts again with it.

import { get, post, put } from '../api.js'
import { milliseconds, t } from '../i18n.js'
import { Button, html, messageOf, useEffect, useState } from '../ui.js'

const LOOK_AGAIN_MS = 500
const PATIENCE_MS = 90_000
const OTHER = 'other'

export function Connect({ onChoose }) {
  const [known, setKnown] = useState(null)
  const [provider, setProvider] = useState(null)
  const [given, setGiven] = useState({ base_url: '', api_key: '', model: '' })
  const [models, setModels] = useState([])
  const [told, setTold] = useState(null)
  const [busy, setBusy] = useState('')
  useEffect(() => {
    get('/api/v1/model').then(setKnown, () => setKnown(null))
  }, [])
  if (known?.source !== 'none') return null

  const change = (values) => setGiven((before) => ({ ...before, ...values }))
  const choose = (name) => {
    const found = known.providers.find((each) => each.name === name)
    onChoose()
    setProvider(name)
    setModels([])
    setTold(null)
    change({ base_url: found?.base_url ?? '', model: '' })
  }
  const api = known.providers.find((each) => each.name === provider && each.base_url === given.base_url)?.api ?? 'chat'
  const endpoint = { base_url: given.base_url.trim(), ...(given.api_key.trim() ? { api_key: given.api_key.trim() } : {}) }
  const chosen = { ...endpoint, model: given.model.trim(), api }

  const working = async (what, work) => {
    setBusy(what)
    setTold(null)
    try {
      await work()
    } catch (error) {
      setTold({ problem: messageOf(error) })
    }
    setBusy('')
  }
  const list = () =>
    working('list', async () => {
      const offered = await post('/api/v1/model/models', endpoint)
      setModels(offered.models)
      if (offered.models.length && !offered.models.includes(given.model)) change({ model: offered.models[0] })
      setTold(offered.problem ? offered : { text: t('connect.listed', { n: offered.models.length }) })
    })
  const attempt = () =>
    working('try', async () => {
      const tried = await post('/api/v1/model/try', chosen)
      setTold(tried.problem ? tried : { text: `${tried.answer} · ${milliseconds(tried.milliseconds)}` })
    })
  const keep = () =>
    working('keep', async () => {
      await put('/api/v1/model', chosen)
      if (!known.restarts) return setTold({ text: t('connect.restart_it') })
      setTold({ text: t('connect.restarting') })
      await restarted()
      location.reload()
    })

  const complete = chosen.base_url && chosen.model
  return html`<form class="connect" aria-label=${t('connect.title')} onSubmit=${(event) => { event.preventDefault(); keep() }}>
    <h2>${t('connect.title')}</h2>
    <p class="muted">${t('connect.lead')}</p>
    <div class="providers" role="group" aria-label=${t('connect.provider')}>
      ${[...known.providers.map((each) => each.name), OTHER].map((name) => html`<button type="button" class="button small" aria-pressed=${provider === name} onClick=${() => choose(name)}>${name === OTHER ? t('connect.other') : name}</button>`)}
    </div>
    ${provider && html`
      <label class="field"><span>${t('connect.address')}</span><input name="base_url" type="url" required spellcheck="false" value=${given.base_url} onInput=${(event) => change({ base_url: event.target.value })} /></label>
      <label class="field"><span>${t('connect.key')}</span><input name="api_key" type="password" autocomplete="off" spellcheck="false" value=${given.api_key} onInput=${(event) => change({ api_key: event.target.value })} /></label>
      <label class="field"><span>${t('connect.model')}</span><input name="model" required list="models-of-endpoint" spellcheck="false" value=${given.model} onInput=${(event) => change({ model: event.target.value })} />
        <datalist id="models-of-endpoint">${models.map((name) => html`<option value=${name} />`)}</datalist></label>
      ${told?.problem && html`<p class="problem" role="alert">${told.problem}</p>`}
      ${told?.text && html`<p class="told" role="status">${told.text}</p>`}
      <p class="actions">
        <${Button} onClick=${list} disabled=${Boolean(busy) || !endpoint.base_url}>${t('connect.list')}<//>
        <${Button} onClick=${attempt} disabled=${Boolean(busy) || !complete}>${t('connect.try')}<//>
        <button class="button primary" disabled=${Boolean(busy) || !complete}>${t('connect.keep')}</button>
      </p>`}
  </form>`
}

/** Wait until the service answers with a model. */
async function restarted() {
  const end = Date.now() + PATIENCE_MS
  while (Date.now() < end) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS))
    try {
      if (!(await get('/api/v1/service')).offline) return
    } catch {
      // It is starting.
    }
  }
}
