// Webhooks: addresses that are told of events, tried out here, with what they were told.

import { get, post, remove } from '../api.js'
import { number, t, word } from '../i18n.js'
import { Button, Chip, Confirm, Dialog, Field, Form, html, Loaded, More, toast, useLoad, usePages, useState, When } from '../ui.js'
import { useForm } from './parts.js'

const KINDS = ['promise.due', 'memory.changed', 'proposal.waiting', 'turn.failed', 'erasure.done']
const path = (...parts) => ['/api/v1/webhooks', ...parts].join('/')

export function Webhooks() {
  const hooks = useLoad(() => get(path()))
  const [dialog, setDialog] = useState(null)
  const close = () => {
    setDialog(null)
    hooks.reload()
  }
  const tryOut = async ({ id }) => {
    const { status, error } = await post(path(id, 'test'))
    toast(error ? t('webhooks.failed', { error }) : t('webhooks.works', { status }), { kind: error ? 'bad' : '' })
  }
  return html`<div class="card-head" style=${{ margin: '1.6rem 0 .6rem' }}><h2>${t('webhooks.title')}</h2><span class="grow"></span><button type="button" class="button" onClick=${() => setDialog({ kind: 'new' })}>${t('webhooks.new')}</button></div>
    <p class="muted">${t('webhooks.lead')}</p>
    <${Loaded} of=${hooks} empty=${t('webhooks.none')}>
      <ul class="cards">${hooks.data?.items.map((hook) => html`<li class="card" key=${hook.id}>
        <div class="card-head"><b class="clip" title=${hook.url}>${hook.url}</b><small class="muted"><${When} at=${hook.created_at} /></small></div>
        <p>${hook.kinds.length ? hook.kinds.map((kind) => html`<${Chip}>${word('event', kind)}<//> `) : t('webhooks.all')}</p>
        <div class="row end"><button type="button" class="button quiet" onClick=${() => setDialog({ kind: 'remove', hook })}>${t('remove')}</button><button type="button" class="button quiet" onClick=${() => setDialog({ kind: 'told', hook })}>${t('webhooks.told')}</button><${Button} onClick=${() => tryOut(hook)}>${t('webhooks.try')}<//></div>
      </li>`)}</ul>
    <//>
    ${dialog?.kind === 'new' && html`<${New} onClose=${close} />`}
    ${dialog?.kind === 'told' && html`<${Told} hook=${dialog.hook} onClose=${close} />`}
    ${dialog?.kind === 'remove' && html`<${Confirm} title=${t('webhooks.remove_title')} action=${t('remove')} onClose=${close} onConfirm=${() => remove(path(dialog.hook.id))}><p>${dialog.hook.url}</p><//>`}`
}

function New({ onClose }) {
  const [form, set] = useForm({ url: '', kinds: [] })
  const [secret, setSecret] = useState(null)
  const flip = (kind) => set('kinds')(form.kinds.includes(kind) ? form.kinds.filter((each) => each !== kind) : [...form.kinds, kind])
  if (secret) return html`<${Dialog} title=${t('webhooks.made')} onClose=${onClose}><p>${t('webhooks.only_now')}</p><p class="secret">${secret}</p><footer><button type="button" class="button primary" onClick=${onClose}>${t('close')}</button></footer><//>`
  return html`<${Dialog} title=${t('webhooks.new')} onClose=${onClose}><${Form} action=${t('keys.make')} missing=${form.url.trim() ? null : t('webhooks.missing')} onSubmit=${async () => setSecret((await post(path(), form)).secret)} onClose=${onClose}>
    <${Field} required label=${t('webhooks.url')} hint=${t('webhooks.url_hint')}><input type="url" autofocus value=${form.url} onInput=${set('url')} /><//>
    <p>${KINDS.map((kind) => html`<label class="check"><input type="checkbox" checked=${form.kinds.includes(kind)} onChange=${() => flip(kind)} />${word('event', kind)}</label>`)}</p>
    <p class="muted small-text">${t('webhooks.kinds_hint')}</p>
  <//><//>`
}

function Told({ hook, onClose }) {
  const list = usePages((after) => get(path(hook.id, 'deliveries'), { after, limit: 30 }))
  const again = async ({ id }) => {
    await post(path(hook.id, 'deliveries', id, 'repeat'))
    list.reload()
  }
  return html`<${Dialog} wide title=${t('webhooks.told')} onClose=${onClose}><${Loaded} of=${list} empty=${t('webhooks.nothing')}>
    <ul class="plain">${list.items?.map((each) => html`<li class="row" key=${each.id}>
      <span class="grow"><b>${word('event', each.kind)}</b> <${Chip} kind=${each.state === 'failed' ? 'bad' : each.state === 'waiting' ? 'note' : ''}>${word('delivery', each.state)}<//> <small class="muted"><${When} at=${each.created_at} /> · ${t('webhooks.tries', { n: number(each.tries) })}${each.status ? ` · ${each.status}` : ''}${each.error ? ` · ${each.error}` : ''}</small></span>
      ${each.state !== 'waiting' && html`<${Button} kind="quiet small" onClick=${() => again(each)}>${t('webhooks.again')}<//>`}
    </li>`)}</ul><${More} of=${list} />
  <//><//>`
}
