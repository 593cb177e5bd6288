// Health: each store and model, and what a few tiny requests show of the models.

import { post, rooted } from '../api.js'
import { milliseconds, t, word } from '../i18n.js'
import { Button, Chip, html, Loaded, Page, useLoad, useState } from '../ui.js'
import { useRefresh } from './parts.js'

export const screen = 'health'

/** `/readyz` answers 503 with the same document when something is down. */
async function readiness() {
  const response = await fetch(rooted('/readyz'))
  return response.json()
}

/** What is said of a part; of the background work and of indexes that are rebuilt with its counts. */
function detailOf(text) {
  const [, state, waiting, failed] = /^([^:]+): (\d+) waiting.*, (\d+) failed$/.exec(text) ?? []
  const [, where, done, total] = /^(.+); .+ (\d+) of (\d+) done$/.exec(text) ?? []
  if (where) return t('detail.rebuilding', { where: word('detail', where), done, total })
  return state ? t('detail.jobs', { state: word('detail', state), waiting, failed }) : word('detail', text)
}

export function Screen({ service, may }) {
  const ready = useLoad(readiness)
  const [models, setModels] = useState(null)
  useRefresh(ready.reload, true, 15)
  const ask = async () => setModels((await post('/api/v1/doctor')).models)
  return html`<${Page} title=${t('nav.health')} lead=${t('health.lead', { version: service.version })} actions=${may('admin') && html`<${Button} onClick=${ask}>${t('health.ask')}<//>`}>
    <${Loaded} of=${ready}>${ready.data && html`
      <p><span class=${`state ${ready.data.state}`}><b>${word('health', ready.data.state)}</b></span></p>
      <div class="grid">${ready.data.dependencies.map((each) => html`<section class="card" key=${each.name}><div class="card-head"><h2>${word('dependency', each.name)}</h2><span class="grow"></span><span class=${`state ${each.state}`}>${word('health', each.state)}</span></div><p class="muted">${detailOf(each.detail)}</p>${each.latency_ms !== null && html`<div class="facts">${milliseconds(each.latency_ms)}</div>`}</section>`)}</div>`}
    <//>
    ${models && html`<h2 style=${{ margin: '1.6rem 0 .6rem' }}>${t('health.models')}</h2>
      ${models.length === 0 && html`<p class="muted">${t('health.no_models')}</p>`}
      <div class="cards">${models.map((each) => html`<section class="card"><div class="card-head"><h2>${each.model}</h2>${each.roles.map((role) => html`<${Chip}>${word('model_role', role)}<//>`)}<span class="grow"></span><span class=${`state ${each.answers ? 'ok' : 'down'}`}>${each.answers ? t('health.answers') : t('health.silent')}</span></div>
        <dl class="pairs"><dt>${t('health.tools')}</dt><dd>${word('acceptance', each.tools)}</dd><dt>${t('health.json')}</dt><dd>${word('acceptance', each.json_schema)}</dd>${each.dimensions && html`<dt>${t('health.dimensions')}</dt><dd>${each.dimensions}</dd>`}${each.answer_ms !== null && html`<dt>${t('health.takes')}</dt><dd>${milliseconds(each.answer_ms)}</dd>`}</dl>${each.advice.map((advice) => html`<p class="bad">${advice}</p>`)}</section>`)}</div>`}
  <//>`
}
