// Experiments: different settings for different users, and what comes of them.

import { get, patch, post, remove } from '../api.js'
import { currentLanguage, number, percent, t, word } from '../i18n.js'
import { Button, Chip, Confirm, Dialog, Field, Form, html, Loaded, More, Page, toast, useLoad, usePages, useState } from '../ui.js'
import { withoutDemo } from '../demo.js'
import { useForm } from './parts.js'

export const screen = 'experiments'
const path = (name) => `/api/v1/experiments/${encodeURIComponent(name)}`
const SHARES = new Set(['feedback_up', 'errors', 'degraded'])
const EXAMPLE = [{ name: 'five' }, { name: 'ten', settings: { recall_items: 10, recall_tokens: 600 } }]

export function Screen() {
  const list = usePages((after) => get('/api/v1/experiments', { after, limit: 50 }).then(withoutDemo))
  const [dialog, setDialog] = useState(null)
  const change = async (each, status) => {
    await patch(path(each.name), { status })
    list.reload()
  }
  return html`<${Page} title=${t('nav.experiments')} lead=${t('experiments.lead')} actions=${html`<button type="button" class="button primary" onClick=${() => setDialog({ kind: 'new' })}>${t('experiments.new')}</button>`}>
    <${Loaded} of=${list} empty=${t('experiments.none')} emptyText=${t('experiments.none_hint')}>
      <ul class="cards">${list.items?.map((each) => html`<li class="card" key=${each.name}>
        <div class="card-head"><h2>${each.name}</h2><span class=${`state ${each.status}`}>${word('status', each.status)}</span><span class="grow"></span>
          ${each.status === 'running' ? html`<${Button} kind="small" onClick=${() => change(each, 'stopped')}>${t('stop')}<//>` : html`<${Button} kind="small" onClick=${() => change(each, 'running')}>${t('experiments.start')}<//>`}</div>
        ${each.description && html`<p>${each.description}</p>`}
        <p>${each.variants.map((variant) => html`<${Chip} title=${JSON.stringify(variant.settings)}>${variant.name}<//> `)}</p>
        <div class="facts"><span>${t('experiments.share', { share: percent(each.share) })}</span><span class="grow"></span><button type="button" class="link" onClick=${() => setDialog({ kind: 'report', each })}>${t('experiments.report')}</button>${each.status !== 'running' && html`<button type="button" class="link" onClick=${() => setDialog({ kind: 'remove', each })}>${t('remove')}</button>`}</div>
      </li>`)}</ul><${More} of=${list} />
    <//>
    ${dialog?.kind === 'new' && html`<${New} onClose=${() => setDialog(null)} onDone=${() => { setDialog(null); list.reload() }} />`}
    ${dialog?.kind === 'report' && html`<${Report} name=${dialog.each.name} onClose=${() => setDialog(null)} />`}
    ${dialog?.kind === 'remove' && html`<${Confirm} title=${t('experiments.remove', { name: dialog.each.name })} action=${t('remove')} onClose=${() => setDialog(null)} onConfirm=${async () => { await remove(path(dialog.each.name)); list.reload() }} />`}
  <//>`
}

function New({ onClose, onDone }) {
  const [form, set] = useForm({ name: '', description: '', share: '0.5', variants: JSON.stringify(EXAMPLE, null, 2) })
  const make = async () => {
    let variants
    try {
      variants = JSON.parse(form.variants)
    } catch (error) {
      return toast(t('core.not_json', { reason: currentLanguage() === 'en' ? error.message : '' }), { kind: 'bad' })
    }
    await post('/api/v1/experiments', { name: form.name, description: form.description, share: Number(form.share), variants })
    return onDone()
  }
  return html`<${Dialog} title=${t('experiments.new')} onClose=${onClose}><${Form} action=${t('experiments.draft')} missing=${form.name.trim() ? null : t('missing.name')} onSubmit=${make} onClose=${onClose}>
    <${Field} required label=${t('experts.name')}><input autofocus value=${form.name} onInput=${set('name')} /><//>
    <${Field} label=${t('experiments.description')}><input value=${form.description} onInput=${set('description')} /><//>
    <${Field} label=${t('experiments.take_part', { share: percent(Number(form.share)) })}><input type="range" min="0.05" max="1" step="0.05" value=${form.share} onInput=${set('share')} /><//>
    <${Field} label=${t('experiments.variants')} hint=${t('experiments.variants_hint')}><textarea class="code" rows="9" spellcheck="false" value=${form.variants} onInput=${set('variants')}></textarea><//>
  <//><//>`
}

function Report({ name, onClose }) {
  const found = useLoad(() => get(`${path(name)}/report`), [name])
  const variants = found.data?.variants ?? []
  const show = (measure, value) => (value === null || value === undefined ? '–' : SHARES.has(measure) ? number(value, { style: 'percent', maximumFractionDigits: 1 }) : number(value, { maximumFractionDigits: 0 }))
  const measured = (measure, { value, low, high }) => html`${show(measure, value)}${low !== null && html`<br /><small class="muted">${show(measure, low)} – ${show(measure, high)}</small>`}`
  const measures = Object.keys(variants[0]?.measures ?? {})
  return html`<${Dialog} wide title=${t('experiments.report_of', { name })} onClose=${onClose}>
    <${Loaded} of=${found}><div class="scroll-x" tabindex="0"><table><thead><tr><td></td>${variants.map((variant) => html`<th class="num">${variant.name}</th>`)}</tr></thead><tbody>
      ${['users', 'turns', 'rated'].map((count) => html`<tr><th>${t(`experiments.${count}`)}</th>${variants.map((variant) => html`<td class="num">${number(variant[count])}</td>`)}</tr>`)}
      ${measures.map((measure) => html`<tr><th>${word('measure', measure)}</th>${variants.map((variant) => html`<td class="num">${measured(measure, variant.measures[measure])}</td>`)}</tr>`)}
    </tbody></table></div><p class="muted">${t('experiments.intervals')}</p><//>
  <//>`
}
