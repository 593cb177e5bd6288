// The console: signs in, loads the strings, and shows the screen that the address names.

import { render } from './vendor/preact.js'
import { get, Problem, signedOut } from './api.js'
import { loadLanguage, preferredLanguage, t } from './i18n.js'
import { html, messageOf, Toasts, useEffect, useState } from './ui.js'
import { Shell } from './shell.js'
import { SignIn } from './sign-in.js'

// Everything that the first picture needs is asked for at once.
let first = get('/api/v1/service')
first.catch(() => {})

function Console() {
  const [service, setService] = useState(null)
  const [needsSignIn, setNeedsSignIn] = useState(false)
  const [failure, setFailure] = useState(null)

  const load = async () => {
    setFailure(null)
    try {
      const asked = first ?? get('/api/v1/service')
      first = null
      setService(await asked)
      setNeedsSignIn(false)
    } catch (error) {
      if (error instanceof Problem && error.status === 401) setNeedsSignIn(true)
      else setFailure(error)
    }
  }
  useEffect(() => {
    const show = () => setNeedsSignIn(true)
    signedOut.addEventListener('signed-out', show)
    load()
    return () => signedOut.removeEventListener('signed-out', show)
  }, [])

  return html`
    ${service && html`<${Shell} service=${service} onSignedOut=${() => location.reload()} />`}
    ${failure && html`<main class="alone"><h1>Anamnesis</h1><p role="alert">${messageOf(failure)}</p><button type="button" class="button" onClick=${load}>${t('try_again')}</button></main>`}
    ${needsSignIn && html`<${SignIn} again=${service !== null} onSignedIn=${load} />`}
    <${Toasts} />`
}

await loadLanguage(preferredLanguage())
const root = document.getElementById('app')
root.replaceChildren()
render(html`<${Console} />`, root)
