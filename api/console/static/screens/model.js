// The model: which one answers now, how well it files, what it costs, another in its place, or none.

import { get, post, put, remove } from '../api.js'
import { known as textOf, number, t, word } from '../i18n.js'
import { Button, Chip, Confirm, html, Loaded, messageOf, Page, Select, useLoad, useState } from '../ui.js'
import { ModelForm, used } from './model-form.js'

export const screen = 'model'

export function Screen() {
  const known = useLoad(() => get('/api/v1/model'))
  return html`<${Page} title=${t('nav.model')} lead=${t('model.lead')}>
    <${Loaded} of=${known}>${known.data && html`<div class="cards settings"><${Now} known=${known.data} />${known.data.source !== 'none' && html`<${Filing} known=${known.data} /><${Usage} />`}
      ${known.data.source !== 'environment' && html`<section class="card"><h2>${t(known.data.source === 'none' ? 'connect.title' : 'model.another')}</h2><${ModelForm} known=${known.data} /></section>`}</div>`}<//>
  <//>`
}

function Now({ known }) {
  const [removing, setRemoving] = useState(false)
  const [told, setTold] = useState(null)
  const offline = known.source === 'none'
  const removeIt = async () => {
    await remove('/api/v1/model')
    used(known, setTold)
  }
  return html`<section class="card"><div class="card-head"><h2>${t('model.now')}</h2><span class="grow"></span>${!offline && html`<${Chip}>${t(`model_source.${known.source}`)}<//>`}</div>
    <dl class="pairs">
      <dt>${t('connect.model')}</dt><dd>${known.model ?? t('keys.offline')}</dd>
      ${!offline && html`<dt>${t('connect.address')}</dt><dd>${known.base_url ?? t('model.usual_address')}</dd><dt>${t('model.key')}</dt><dd>${known.key ?? t('model.no_key')}</dd><dt>${t('keys.small_model')}</dt><dd>${known.small_model ?? t('connect.same')}</dd>`}
      <dt>${t('keys.embedding')}</dt><dd>${known.embedding_model ?? t('connect.built_in')}${known.embedding_base_url && html` <small class="muted">${known.embedding_base_url}</small>`}</dd>
    </dl>
    ${offline && html`<p class="muted">${t('model.offline')}</p>`}
    ${known.source === 'environment' && html`<p class="muted">${t('model.environment')}</p>`}
    ${told && html`<p role="status">${told.text}</p>`}
    ${known.source === 'console' && html`<div class="row end"><${Button} onClick=${() => setRemoving(true)}>${t('model.remove')}<//></div>`}
    ${removing && html`<${Confirm} title=${t('model.remove_title', { name: known.model })} action=${t('remove')} onConfirm=${removeIt} onClose=${() => setRemoving(false)}><p>${t('model.remove_note')}</p><//>`}
  </section>`
}

/** How well the model files: the grade that is kept, a check, and what it was asked for. */
function Filing({ known }) {
  const [found, setFound] = useState(null)
  const [busy, setBusy] = useState(false)
  const [told, setTold] = useState(null)
  const working = async (work) => {
    setBusy(true)
    setTold(null)
    try {
      await work()
    } catch (error) {
      setTold({ problem: messageOf(error) })
    }
    setBusy(false)
  }
  const check = () => working(async () => setFound(await post('/api/v1/model/check')))
  const keep = (grade) =>
    working(async () => {
      await put('/api/v1/model/grade', { grade: grade || null })
      await used(known, setTold)
    })
  const may = known.source === 'console' && known.filing_grade_source !== 'environment'
  return html`<section class="card"><div class="card-head"><h2>${t('grade.title')}</h2></div>
    ${may ? html`<label class="field"><span>${t('grade.kept')}</span><${Select} value=${known.filing_grade ?? ''} disabled=${busy} onChange=${keep} options=${['', 'well', 'some', 'none'].map((each) => [each, t(`grade.${each || 'unknown'}`)])} /></label>` : html`<p>${t(`grade.${known.filing_grade ?? 'unknown'}`)}</p>${!may && html`<p class="muted small-text">${t('connect.by_variable', { variable: 'ANAMNESIS_MEMORY_FILING_GRADE' })}</p>`}`}
    ${found && html`<${Found} found=${found} />`}
    ${told?.problem && html`<p class="failure" role="alert">${told.problem}</p>`}${told?.text && html`<p role="status">${told.text}</p>`}
    <p class="actions"><${Button} onClick=${check} disabled=${busy}>${t('grade.check')}<//>${found && may && found.grade !== known.filing_grade && html`<${Button} kind="primary" onClick=${() => keep(found.grade)} disabled=${busy}>${t('grade.keep')}<//>`}</p>
    <p class="muted small-text">${t('grade.note')}</p>
  </section>`
}

export function Found({ found }) {
  return html`<p role="status">${t(`grade.${found.grade}`)}</p>
    <ul class="tried">${found.tried.map((each) => html`<li><span class=${`state ${each.result === 'right' ? 'ok' : 'down'}`}>${t(`tried.${each.result}`)}</span> ${each.asked}${each.kept.length > 0 && html` <small class="muted" dir="auto">${each.kept.join('; ')}</small>`}</li>`)}</ul>
    ${found.cuts_prompts && html`<p class="failure" role="alert">${t('grade.cuts')}</p>`}`
}

/** What the last 30 days cost, by purpose, and what of it memory is. */
function Usage() {
  const used = useLoad(() => get('/api/v1/usage?by=purpose'))
  return html`<section class="card"><div class="card-head"><h2>${t('usage.title')}</h2></div>
    <${Loaded} of=${used} empty=${t('usage.none')}>${used.data && html`
      <div class="scroll-x" tabindex="0"><table><thead><tr><th>${t('usage.purpose')}</th><th class="num">${t('usage.calls')}</th><th class="num">${t('usage.input')}</th><th class="num">${t('usage.cached')}</th><th class="num">${t('usage.output')}</th></tr></thead><tbody>
        ${used.data.items.map((each) => html`<tr key=${each.purpose}><td>${textOf(`purpose.${each.purpose}`) ?? word('task', each.purpose)}</td><td class="num">${number(each.calls)}</td><td class="num">${number(each.input_tokens)}</td><td class="num">${number(each.cached_tokens)}</td><td class="num">${number(each.output_tokens)}</td></tr>`)}
      </tbody></table></div>
      <p>${t('usage.memory', { calls: number(used.data.memory.calls), tokens: number(used.data.memory.input_tokens + used.data.memory.output_tokens), n: number(used.data.memory.statements) })}${used.data.memory.tokens_per_statement !== null && ` ${t('usage.each', { n: number(Math.round(used.data.memory.tokens_per_statement)) })}`}</p>`}<//>
  </section>`
}
