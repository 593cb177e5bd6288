// Keys, limits and the models that are set.

import { get, post, remove } from '../api.js'
import { number, t, word } from '../i18n.js'
import { Chip, Confirm, Dialog, Field, Form, html, Icon, Loaded, Page, useLoad, useState, When } from '../ui.js'
import { useForm } from './parts.js'
import { Webhooks } from './webhooks.js'

export const screen = 'keys'
const SCOPES = ['chat', 'memory:read', 'memory:write', 'admin']

export function Screen({ service, may }) {
  const { limits } = service
  const [dialog, setDialog] = useState(null)
  const keys = useLoad(async () => (may('admin') ? get('/api/v1/keys') : { items: [] }))
  const figure = (value, label) => html`<div class="figure"><b>${value === null ? t('keys.no_limit') : number(value)}</b><span>${label}</span></div>`
  return html`<${Page} title=${t('nav.keys')} lead=${t('keys.lead')} actions=${may('admin') && html`<button type="button" class="button primary" onClick=${() => setDialog({ kind: 'new' })}>${t('keys.new')}</button>`}>
    ${service.offline && html`<p class="banner"><${Icon} name="spark" /><span>${t('offline')} <code>ANAMNESIS_LLM_MODEL</code> ${t('and')} <code>ANAMNESIS_LLM_API_KEY</code>${t('full_stop')}</span></p>`}
    <div class="grid figures" style=${{ marginBottom: '1.4rem' }}>
      ${figure(limits.context_budget_tokens, t('keys.budget'))}${figure(limits.turns_per_user_per_minute, t('keys.per_user'))}${figure(limits.requests_per_tenant_per_minute, t('keys.per_tenant'))}${figure(limits.turns_at_once, t('keys.at_once'))}
    </div>
    <section class="card"><dl class="pairs">
      <dt>${t('keys.auth')}</dt><dd>${word('auth', service.auth)}</dd>
      <dt>${t('keys.yours')}</dt><dd>${service.scopes.map((scope) => html`<${Chip}>${scope}<//> `)}</dd>
      <dt>${t('keys.model')}</dt><dd>${service.model ?? t('keys.offline')}</dd>
      <dt>${t('keys.small_model')}</dt><dd>${service.small_model ?? service.model ?? '–'}</dd>
      <dt>${t('keys.embedding')}</dt><dd>${service.embedding_model ?? t('keys.built_in')}</dd>
      <dt>${t('users.zone')}</dt><dd>${service.default_timezone}</dd>
    </dl></section>
    ${may('admin') && html`<h2 style=${{ margin: '1.6rem 0 .6rem' }}>${t('keys.keys')}</h2>
      ${service.auth !== 'api_key' && html`<p class="muted">${t('keys.not_asked')}</p>`}
      <${Loaded} of=${keys} empty=${t('keys.none')}>
        <div class="scroll-x" tabindex="0"><table><thead><tr><th>${t('keys.name')}</th><th>${t('keys.scopes')}</th><th>${t('keys.made')}</th><th>${t('keys.used')}</th><th><span class="unseen">${t('actions')}</span></th></tr></thead><tbody>
          ${keys.data?.items.map((key) => html`<tr key=${key.id}><td><b>${key.name}</b></td><td>${key.scopes.map((scope) => html`<${Chip}>${scope}<//> `)}</td><td><${When} at=${key.created_at} /></td><td><${When} at=${key.last_used_at} /></td><td>${key.revoked_at ? html`<${Chip} kind="bad">${t('keys.revoked')}<//>` : html`<button type="button" class="link" onClick=${() => setDialog({ kind: 'revoke', key })}>${t('keys.revoke')}</button>`}</td></tr>`)}
        </tbody></table></div>
      <//>
      <${Webhooks} />`}
    ${dialog?.kind === 'new' && html`<${New} onClose=${() => { setDialog(null); keys.reload() }} />`}
    ${dialog?.kind === 'revoke' && html`<${Confirm} title=${t('keys.revoke_title', { name: dialog.key.name })} action=${t('keys.revoke')} onClose=${() => setDialog(null)} onConfirm=${async () => { await remove(`/api/v1/keys/${dialog.key.id}`); keys.reload() }}><p>${t('keys.revoke_note')}</p><//>`}
  <//>`
}

function New({ onClose }) {
  const [form, set] = useForm({ name: '', scopes: ['chat', 'memory:read', 'memory:write'] })
  const [secret, setSecret] = useState(null)
  const make = async () => setSecret((await post('/api/v1/keys', form)).key)
  if (secret) return html`<${Dialog} title=${t('keys.made_title')} onClose=${onClose}><p>${t('keys.only_now')}</p><p class="secret">${secret}</p><footer><button type="button" class="button primary" onClick=${onClose}>${t('close')}</button></footer><//>`
  return html`<${Dialog} title=${t('keys.new')} onClose=${onClose}><${Form} action=${t('keys.make')} missing=${!form.name.trim() ? t('missing.name') : !form.scopes.length ? t('missing.scope') : null} onSubmit=${make} onClose=${onClose}>
    <${Field} required label=${t('keys.name')}><input autofocus value=${form.name} onInput=${set('name')} /><//>
    <p>${SCOPES.map((scope) => html`<label class="check"><input type="checkbox" checked=${form.scopes.includes(scope)} onChange=${() => set('scopes')(form.scopes.includes(scope) ? form.scopes.filter((each) => each !== scope) : [...form.scopes, scope])} />${scope}</label>`)}</p>
  <//><//>`
}
