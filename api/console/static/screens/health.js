// Health: each store and model, and what a few tiny requests show of the models.

import { post, rooted } from '../api.js'
import { currentLanguage, known as textOf, milliseconds, t, word } from '../i18n.js'
import { Button, Chip, html, Loaded, Original, Page, useLoad, useState } from '../ui.js'
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
  return state ? t('detail.jobs', { state: word('detail', state), waiting, failed }) : textOf(`detail.${text}`)
}

/** What is said of a part, piece by piece; pieces without a translation stand folded away in the service's words. */
function Detail({ name, text }) {
  const whole = detailOf(text) ?? (currentLanguage() === 'en' ? text : null)
  if (whole !== null) return html`<p class="muted">${whole}</p>`
  const pieces = text.split(/; |: /).map((piece) => textOf(`detail.${piece}`) ?? (name === 'llm' || name === 'embeddings' ? (/ /.test(piece) ? null : piece) : null))
  return html`<p class="muted">${pieces.filter(Boolean).join(t('list_separator'))}</p>${pieces.includes(null) && html`<${Original} text=${text} />`}`
}

/** What a part is called; a server of tools has a name of its own. */
const nameOf = (name) => (name.startsWith('tools: ') ? t('dependency.tool_server', { name: name.slice(7) }) : word('dependency', name))

export function Screen({ service, may }) {
  const ready = useLoad(readiness)
  const [models, setModels] = useState(null)
  useRefresh(ready.reload, true, 15)
  const ask = async () => setModels((await post('/api/v1/doctor')).models)
  return html`<${Page} title=${t('nav.health')} lead=${t('health.lead', { version: service.version })} actions=${may('admin') && html`<${Button} onClick=${ask}>${t('health.ask')}<//>`}>
    <${Loaded} of=${ready}>${ready.data && html`
      <p><span class=${`state ${ready.data.state}`}><b>${word('health', ready.data.state)}</b></span></p>
      <div class="grid">${ready.data.dependencies.map((each) => html`<section class="card" key=${each.name}><div class="card-head"><h2>${nameOf(each.name)}</h2><span class="grow"></span><span class=${`state ${each.state}`}>${word('health', each.state)}</span></div><${Detail} name=${each.name} text=${each.detail} />${each.latency_ms !== null && html`<div class="facts">${milliseconds(each.latency_ms)}</div>`}</section>`)}</div>`}
    <//>
    ${models && html`<h2 style=${{ margin: '1.6rem 0 .6rem' }}>${t('health.models')}</h2>
      ${models.length === 0 && html`<p class="muted">${t('health.no_models')}</p>`}
      <div class="cards">${models.map((each) => html`<section class="card"><div class="card-head"><h2>${word('detail', each.model)}</h2>${each.roles.map((role) => html`<${Chip}>${word('model_role', role)}<//>`)}<span class="grow"></span><span class=${`state ${each.answers ? 'ok' : 'down'}`}>${each.answers ? t('health.answers') : t('health.silent')}</span></div>
        <dl class="pairs"><dt>${t('health.tools')}</dt><dd>${word('acceptance', each.tools)}</dd><dt>${t('health.json')}</dt><dd>${word('acceptance', each.json_schema)}</dd>${each.dimensions && html`<dt>${t('health.dimensions')}</dt><dd>${each.dimensions}</dd>`}${each.answer_ms !== null && html`<dt>${t('health.takes')}</dt><dd>${milliseconds(each.answer_ms)}</dd>`}</dl>${each.advice.length > 0 && html`<p class="bad">${t('health.advice')}</p>`}${each.advice.map((advice) => html`<${Original} text=${advice} />`)}</section>`)}</div>`}
  <//>`
}
