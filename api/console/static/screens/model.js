// The model: which one answers now, another in its place, or none.

import { get, remove } from '../api.js'
import { t } from '../i18n.js'
import { Button, Chip, Confirm, html, Loaded, Page, useLoad, useState } from '../ui.js'
import { ModelForm, used } from './model-form.js'

export const screen = 'model'

export function Screen() {
  const known = useLoad(() => get('/api/v1/model'))
  return html`<${Page} title=${t('nav.model')} lead=${t('model.lead')}>
    <${Loaded} of=${known}>${known.data && html`<div class="cards settings"><${Now} known=${known.data} />
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
