// The frame around every screen: navigation, conversations, user and language.

import { get, rooted, send, signedOut, userPath } from './api.js'
import { changeLanguage, currentLanguage, LANGUAGES, period, t } from './i18n.js'
import { chooseUser, chosenUser, DEMO, leaveDemo, removeDemo, withoutDemo } from './demo.js'
import { listen } from './events.js'
import { Button, Component, Dialog, Empty, Failure, Field, html, Icon, IconButton, Page, Skeleton, useCallback, useEffect, useLoad, usePages, useSettled, useState } from './ui.js'

const SCREENS = {
  chat: { load: () => import('./chat/chat.js'), icon: 'chat' },
  known: { load: () => import('./screens/known.js'), icon: 'memory', scope: 'memory:read' },
  memory: { load: () => import('./screens/memory.js'), icon: 'search', scope: 'memory:read' },
  core: { load: () => import('./screens/core.js'), icon: 'person', scope: 'memory:read' },
  timeline: { load: () => import('./screens/timeline.js'), icon: 'clock', scope: 'memory:read' },
  recall: { load: () => import('./screens/recall.js'), icon: 'search', scope: 'memory:read' },
  settings: { load: () => import('./screens/settings.js'), icon: 'sliders' },
  proposals: { load: () => import('./screens/proposals.js'), icon: 'check', scope: 'memory:read' },
  promises: { load: () => import('./screens/promises.js'), icon: 'clock', scope: 'memory:read' },
  operations: { load: () => import('./screens/operations.js'), icon: 'log', scope: 'memory:read' },
  knowledge: { load: () => import('./screens/knowledge.js'), icon: 'file', scope: 'chat' },
  experts: { load: () => import('./screens/experts.js'), icon: 'experts', scope: 'chat' },
  experiments: { load: () => import('./screens/experiments.js'), icon: 'flask', scope: 'admin' },
  users: { load: () => import('./screens/users.js'), icon: 'users', scope: 'memory:read' },
  jobs: { load: () => import('./screens/jobs.js'), icon: 'redo', scope: 'admin' },
  model: { load: () => import('./screens/model.js'), icon: 'spark', scope: 'admin' },
  health: { load: () => import('./screens/health.js'), icon: 'heart' },
  keys: { load: () => import('./screens/keys.js'), icon: 'key' },
}
const FIRST = ['chat', 'known', 'timeline']
const DETAILS = ['memory', 'core', 'recall', 'proposals', 'promises', 'operations', 'knowledge', 'experts', 'experiments', 'users', 'jobs', 'model', 'health', 'keys']
const OF_MEMORY = new Set(['known', 'timeline', 'memory', 'core', 'recall', 'proposals', 'promises', 'operations'])

/** The screen and what follows it in the address: `#/chat/<id>`. */
function place() {
  const [screen, ...rest] = location.hash.replace(/^#\/?/, '').split('/')
  return { screen: screen in SCREENS ? screen : 'chat', rest: rest.map(decodeURIComponent) }
}

export const go = (...parts) => {
  location.hash = `#/${parts.map(encodeURIComponent).join('/')}`
}

/** A screen that fails does not take the others with it. */
class Guard extends Component {
  componentDidCatch(error) {
    console.error(error)
    this.setState({ error })
  }

  render({ children }, { error }) {
    return error ? html`<div class="page"><${Failure} error=${error} /></div>` : children
  }
}

export function Shell({ service, onSignedOut }) {
  const [at, setAt] = useState(place)
  const [open, setOpen] = useState(false)
  const [user] = useState(service.user_id ?? chosenUser())
  const [choosing, setChoosing] = useState(false)
  const may = useCallback((scope) => !scope || service.scopes.includes(scope), [service])
  const module = useLoad(() => SCREENS[at.screen].load(), [at.screen])
  const conversations = usePages((after) => get('/api/v1/conversations', { user_id: user, after, limit: 30 }), [user])
  const [language, setLanguage] = useState(currentLanguage)

  const begun = Boolean(conversations.items?.length)
  const profile = useLoad(async () => (may('memory:read') ? userOf(service, user).catch(() => undefined) : undefined), [user, begun])
  const isKnown = begun || conversations.error ? true : !conversations.items || profile.loading ? null : profile.data !== null
  const named = profile.data?.display_name

  useEffect(() => {
    const follow = () => {
      setAt(place())
      setOpen(false)
    }
    addEventListener('hashchange', follow)
    follow() // The address may have changed between the first drawing and this effect.
    return () => removeEventListener('hashchange', follow)
  }, [])
  useEffect(() => {
    const leaving = new AbortController()
    if (isKnown === true && may('memory:read')) listen(user, leaving.signal)
    return () => leaving.abort()
  }, [isKnown, user])
  useEffect(() => {
    document.title = `${t(`nav.${at.screen}`)} · Anamnesis`
  }, [at.screen])
  useEffect(() => {
    const keys = (event) => {
      if ((event.ctrlKey || event.metaKey) && event.shiftKey && event.key.toLowerCase() === 'o') {
        event.preventDefault()
        go('chat')
      }
    }
    addEventListener('keydown', keys)
    return () => removeEventListener('keydown', keys)
  }, [])

  const speak = async (next) => {
    await changeLanguage(next)
    setLanguage(next)
  }
  const Screen = module.data?.Screen
  const link = (screen) =>
    may(SCREENS[screen].scope) &&
    html`<a class="nav-link" href=${`#/${screen}`} aria-current=${at.screen === screen ? 'page' : undefined}><${Icon} name=${SCREENS[screen].icon} />${t(`nav.${screen}`)}</a>`

  return html`<div class=${open ? 'shell open' : 'shell'}>
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.getElementById('main').focus() }}>${t('skip')}</a>
    <aside id="sidebar">
      <div class="brand"><a href="#/chat">Anamnesis</a><button type="button" class="link" onClick=${() => speak(language === 'zh' ? 'en' : 'zh')} title=${t('change_language')}>${LANGUAGES[language === 'zh' ? 'en' : 'zh']}</button></div>
      <a class="new-chat" href="#/chat" aria-keyshortcuts="Control+Shift+O"><${Icon} name="add" />${t('new_chat')}</a>
      <div class="rest"><nav aria-label=${t('nav.label')}>
        ${FIRST.map(link)}
        <details open=${DETAILS.includes(at.screen)}><summary>${t('nav.details')}</summary>${DETAILS.map(link)}</details>
      </nav>
      <${Conversations} user=${user} list=${conversations} current=${at.screen === 'chat' ? at.rest[0] : null} /></div>
      <div class="account">
        <button type="button" class="user" disabled=${service.user_id !== null} onClick=${() => setChoosing(true)}><span class="avatar">${(named ?? user).slice(0, 1).toUpperCase()}</span><span>${named ?? user}<small>${named ? user : t('user')}</small></span></button>
        <a class="icon-button" href=${rooted(currentLanguage() === 'zh' ? 'guide/zh/' : 'guide/')} target="_blank" rel="noopener" aria-label=${t('guide')} title=${t('guide')}><${Icon} name="help" /></a>
        <a class="icon-button" href="#/settings" aria-label=${t('nav.settings')} title=${t('nav.settings')} aria-current=${at.screen === 'settings' ? 'page' : undefined}><${Icon} name="sliders" /></a>
        ${service.auth !== 'none' && html`<button type="button" class="link" onClick=${() => signOut(onSignedOut)}>${t('sign_out')}</button>`}
      </div>
    </aside>
    <button type="button" class="scrim" aria-label=${t('close')} tabindex=${open ? 0 : -1} onClick=${() => setOpen(false)}></button>
    <div class="content">
      <header class="topbar"><${IconButton} icon="menu" label=${t('menu')} aria-expanded=${open} aria-controls="sidebar" onClick=${() => setOpen(true)} /><span>${t(`nav.${at.screen}`)}</span><${IconButton} icon="add" label=${t('new_chat')} onClick=${() => go('chat')} /></header>
      ${user === DEMO && html`<section class="demo-bar" aria-label=${t('demo.note')}><span>${t('demo.note')}</span><button type="button" class="link" onClick=${leaveDemo}>${t('demo.back')}</button>${may('admin') && html`<${Button} kind="link" onClick=${removeDemo}>${t('demo.remove')}<//>`}</section>`}
      <main id="main" tabindex="-1" key=${`${at.screen}:${language}`}>
        <${Guard} key=${at.screen}>
          ${module.error && html`<div class="page"><${Failure} error=${module.error} retry=${module.reload} /></div>`}
          ${OF_MEMORY.has(at.screen) && isKnown !== true
            ? isKnown === false ? html`<${NothingYet} screen=${at.screen} user=${user} />` : html`<div class="page"><${Skeleton} /></div>`
            : Screen && module.data.screen === at.screen
            ? html`<${Screen} key=${user} service=${service} user=${user} rest=${at.rest} may=${may} conversations=${conversations} onLanguage=${speak} onNamed=${profile.reload} />`
            : !module.error && html`<div class="page"><${Skeleton} /></div>`}
        <//>
      </main>
    </div>
    ${choosing && html`<${ChooseUser} current=${user} mayList=${may('memory:read')} onChoose=${(name) => chooseUser(name, at.screen)} onClose=${() => setChoosing(false)} />`}
  </div>`
}

/** The user as stored; null while there is none. */
export async function userOf(service, user) {
  if (service.user_id) return get(userPath(user)).catch((problem) => (problem.status === 404 ? null : Promise.reject(problem)))
  return (await get('/api/v1/users', { prefix: user, limit: 200 })).items.find((each) => each.user_id === user) ?? null
}

const NothingYet = ({ screen, user }) => html`<${Page} title=${t(`nav.${screen}`)}>
  <${Empty} title=${t('nothing_yet', { name: user })}>${t('nothing_yet_hint')}<//>
  <p class="more"><a class="button primary" href="#/chat">${t('new_chat')}</a></p>
<//>`

/** The user's chats: pinned ones first, or those in which a text stands. */
function Conversations({ user, list, current }) {
  const [sought, setSought] = useState('')
  const settled = useSettled(sought.trim())
  const found = usePages((after) => (settled ? get('/api/v1/conversations', { user_id: user, contains: settled, after, limit: 30 }) : { items: [] }), [user, settled])
  const pinned = useLoad(async () => (list.items ? (await get('/api/v1/conversations', { user_id: user, pinned: true, limit: 50 })).items : []), [user, list.items])
  const shown = settled ? found : list
  const items = settled ? found.items : [...(pinned.data ?? []), ...(list.items ?? []).filter((each) => !each.pinned)]
  let group = ''
  return html`<div class="conversations">
    ${list.items?.length > 0 && html`<input type="search" placeholder=${t('chats.search')} aria-label=${t('chats.search')} value=${sought} onInput=${(event) => setSought(event.target.value)} />`}
    ${shown.error && html`<p class="muted">–</p>`}
    ${settled && items?.length === 0 && !found.loading && html`<p class="muted none">${t('memory.none_found')}</p>`}
    ${items?.map((each) => {
      const heading = each.pinned && !settled ? t('chats.pinned') : period(each.created_at)
      const begins = heading !== group
      group = heading
      return html`${begins && html`<h2 key=${heading}>${heading}</h2>`}<a key=${each.id} href=${`#/chat/${each.id}`} aria-current=${each.id === current ? 'page' : undefined} title=${each.title}>${each.title || t('untitled')}</a>`
    })}
    ${shown.more && html`<${Button} kind="quiet small" onClick=${shown.more}>${t('load_more')}<//>`}
  </div>`
}

function ChooseUser({ current, mayList, onChoose, onClose }) {
  const [name, setName] = useState('')
  const found = useLoad(async () => (mayList ? get('/api/v1/users', { prefix: name || undefined, limit: 30 }).then((page) => (name ? page : withoutDemo(page))) : { items: [] }), [name])
  const valid = /^[A-Za-z0-9._:@-]{1,128}$/.test(name)
  const submit = (event) => {
    event.preventDefault()
    if (valid) onChoose(name)
  }
  return html`<${Dialog} title=${t('choose_user')} onClose=${onClose}>
    <form onSubmit=${submit}>
      <${Field} label=${t('user_name')} hint=${t('user_name_hint')}><input value=${name} onInput=${(event) => setName(event.target.value)} autocomplete="off" autofocus /><//>
    </form>
    <ul class="pick">
      ${valid && !found.data?.items.some((each) => each.user_id === name) && html`<li><button type="button" onClick=${() => onChoose(name)}><b>${name}</b><small>${t('new_user')}</small></button></li>`}
      ${found.data?.items.map((each) => html`<li key=${each.user_id}><button type="button" aria-current=${each.user_id === current ? 'true' : undefined} onClick=${() => onChoose(each.user_id)}><b>${each.display_name ?? each.user_id}</b><small>${t('user_numbers', each)}</small></button></li>`)}
    </ul>
  <//>`
}

async function signOut(onSignedOut) {
  await send('DELETE', '/console/session').catch(() => signedOut.dispatchEvent(new Event('signed-out')))
  onSignedOut()
}
