// Sign-in: a key or token becomes a cookie that no script can read.

import { send } from './api.js'
import { t } from './i18n.js'
import { html, messageOf, useEffect, useRef, useState } from './ui.js'

export function SignIn({ again, onSignedIn }) {
  const dialog = useRef()
  const [problem, setProblem] = useState('')
  const [busy, setBusy] = useState(false)
  useEffect(() => dialog.current.showModal(), [])

  const submit = async (event) => {
    event.preventDefault()
    const credential = new FormData(event.target).get('credential').trim()
    setBusy(true)
    setProblem('')
    try {
      await send('POST', '/console/session', { headers: { Authorization: `Bearer ${credential}` } })
      dialog.current.close()
      await onSignedIn()
    } catch (error) {
      setProblem(error.status === 401 ? t('sign_in.refused') : messageOf(error))
    }
    setBusy(false)
  }

  return html`<dialog ref=${dialog} class="sign-in" aria-label=${t('sign_in.title')} onCancel=${(event) => event.preventDefault()}>
    <form onSubmit=${submit}>
      <h1>Anamnesis</h1>
      <p class="muted">${again ? t('sign_in.expired') : t('sign_in.lead')}</p>
      <label class="field"><span>${t('sign_in.credential')}</span>
        <input name="credential" type="password" autocomplete="current-password" required autofocus spellcheck="false" />
        <small>${t('sign_in.hint')}</small>
      </label>
      ${problem && html`<p class="problem" role="alert">${problem}</p>`}
      <button class="button primary" disabled=${busy}>${t('sign_in.action')}</button>
    </form>
  </dialog>`
}
