// Experts: who answers, with what, and the prompt that comes of it.

import { get, patch, post, remove } from '../api.js'
import { currentLanguage, number, t, word } from '../i18n.js'
import { Chip, Confirm, Dialog, Field, Form, html, Loaded, More, Page, Select, useLoad, usePages, useState } from '../ui.js'
import { withoutDemo } from '../demo.js'
import { useForm } from './parts.js'

export const screen = 'experts'
const PARTS = ['core_memory', 'persona_card', 'recall', 'days', 'time', 'mood', 'coming_up', 'knowledge', 'quick_tools', 'memory_filing']
const NEW = { name: '', system_prompt: '', persona: '', model: '', context_strategy: 'summary', context_window: 32000, context_budget_tokens: '', reflection: false, parts_off: [] }
const path = (name) => `/api/v1/experts/${encodeURIComponent(name)}`

export function Screen({ may }) {
  const list = usePages((after) => get('/api/v1/experts', { after, limit: 50 }).then(withoutDemo))
  const [dialog, setDialog] = useState(null)
  return html`<${Page} title=${t('nav.experts')} lead=${t('experts.lead')} actions=${may('admin') && html`<button type="button" class="button primary" onClick=${() => setDialog({ edit: null })}>${t('experts.new')}</button>`}>
    <${Loaded} of=${list}>
      <ul class="cards">${list.items?.map((each) => html`<li class="card" key=${each.name}>
        <div class="card-head"><h2>${each.name}</h2>${each.model && html`<${Chip}>${each.model}<//>`}<${Chip}>${word('strategy', each.context_strategy)}<//>${each.reflection && html`<${Chip}>${t('experts.reflection')}<//>`}</div>
        <p class="muted">${!each.system_prompt ? t('experts.no_prompt') : each.system_prompt.length > 260 ? `${each.system_prompt.slice(0, 260)}…` : each.system_prompt}</p>
        <div class="facts"><${Opinions} name=${each.name} />${each.parts_off.length > 0 && html`<span>${t('experts.without', { what: each.parts_off.map((part) => word('feature', part)).join(t('list_separator')) })}</span>`}<span class="grow"></span>
          <button type="button" class="link" onClick=${() => setDialog({ preview: each })}>${t('experts.preview')}</button>
          ${may('admin') && html`<button type="button" class="link" onClick=${() => setDialog({ edit: each })}>${t('edit')}</button>${each.name !== 'default' && html`<button type="button" class="link" onClick=${() => setDialog({ remove: each })}>${t('remove')}</button>`}`}</div>
      </li>`)}</ul><${More} of=${list} />
    <//>
    ${dialog && 'edit' in dialog && html`<${Edit} expert=${dialog.edit} onClose=${() => setDialog(null)} onDone=${() => { setDialog(null); list.reload() }} />`}
    ${dialog?.preview && html`<${Preview} name=${dialog.preview.name} onClose=${() => setDialog(null)} />`}
    ${dialog?.remove && html`<${Confirm} title=${t('experts.remove', { name: dialog.remove.name })} action=${t('remove')} onClose=${() => setDialog(null)} onConfirm=${async () => { await remove(path(dialog.remove.name)); list.reload() }}><p>${t('experts.remove_note')}</p><//>`}
  <//>`
}

function Opinions({ name }) {
  const found = useLoad(() => get(`${path(name)}/feedback`), [name])
  const { up, down, complaints } = found.data ?? {}
  return up || down ? html`<span>${t('experts.opinions', { up, down, complaints })}</span>` : null
}

function Edit({ expert, onClose, onDone }) {
  const [form, set] = useForm(expert ? { ...expert, model: expert.model ?? '', context_budget_tokens: expert.context_budget_tokens ?? '' } : NEW)
  const save = async () => {
    const body = {
      ...(form.system_prompt.trim() ? { system_prompt: form.system_prompt } : {}), persona: form.persona, model: form.model.trim() || null, context_strategy: form.context_strategy,
      context_window: Number(form.context_window), context_budget_tokens: form.context_budget_tokens === '' ? null : Number(form.context_budget_tokens),
      reflection: form.reflection, parts_off: form.parts_off,
    }
    await (expert ? patch(path(expert.name), body) : post('/api/v1/experts', { ...body, name: form.name }))
    onDone()
  }
  const toggle = (part) => set('parts_off')(form.parts_off.includes(part) ? form.parts_off.filter((each) => each !== part) : [...form.parts_off, part])
  return html`<${Dialog} wide title=${expert ? expert.name : t('experts.new')} onClose=${onClose}><${Form} action=${t('save')} missing=${expert ? null : !form.name.trim() ? t('missing.name') : !form.system_prompt.trim() ? t('missing.instructions') : null} onSubmit=${save} onClose=${onClose}>
    ${!expert && html`<${Field} required label=${t('experts.name')}><input autofocus value=${form.name} onInput=${set('name')} /><//>`}
    <${Field} required=${!expert} label=${t('experts.system_prompt')} hint=${t('experts.system_prompt_hint')}><textarea rows="6" value=${form.system_prompt} onInput=${set('system_prompt')}></textarea><//>
    <${Field} label=${t('experts.persona')}><textarea rows="2" value=${form.persona} onInput=${set('persona')}></textarea><//>
    <div class="two">
      <${Field} label=${t('experts.model')} hint=${t('experts.model_hint')}><input value=${form.model} onInput=${set('model')} /><//>
      <${Field} label=${t('experts.budget')} hint=${t('experts.budget_hint')}><input type="number" min="500" value=${form.context_budget_tokens} onInput=${set('context_budget_tokens')} /><//>
      <${Field} label=${t('experts.strategy')}><${Select} value=${form.context_strategy} onChange=${set('context_strategy')} options=${['summary', 'topics', 'window'].map((each) => [each, word('strategy', each)])} /><//>
      <${Field} label=${t('experts.window')}><input type="number" min="1000" value=${form.context_window} onInput=${set('context_window')} /><//>
    </div>
    <p>${PARTS.map((part) => html`<label class="check"><input type="checkbox" checked=${!form.parts_off.includes(part)} onChange=${() => toggle(part)} />${word('feature', part)}</label>`)}<label class="check"><input type="checkbox" checked=${form.reflection} onChange=${set('reflection')} />${t('experts.reflection')}</label></p>
  <//><//>`
}

function Preview({ name, onClose }) {
  const prompt = useLoad(() => get(`${path(name)}/prompt`, { language: currentLanguage() }), [name])
  return html`<${Dialog} wide title=${t('experts.preview_of', { name })} onClose=${onClose}>
    <${Loaded} of=${prompt}>${prompt.data && html`<p class="muted">${t('experts.tokens', { n: number(prompt.data.tokens) })}</p><div class="section-text" style=${{ margin: 0 }}><pre tabindex="0">${prompt.data.text}</pre></div><p class="muted">${t('experts.preview_note')}</p>`}<//>
  <//>`
}
