// Versions of an answer side by side, and what a conversation never uses.

import { get, post, remove } from '../api.js'
import { t } from '../i18n.js'
import { showMarkdown } from '../markdown.js'
import { Button, Chip, Dialog, Empty, html, Loaded, Skeleton, toast, useEffect, useLoad, useRef, When } from '../ui.js'
import { Said } from '../screens/parts.js'
import { isUnderWay } from './conversation.js'

/** All versions of the turn at a place; `before` is one that has just given way, answered without `without`. */
export function Compare({ conversation, place, before, without, onClose }) {
  const versions = conversation.versions(place)
  if (before && !versions.some(({ id }) => id === before.id)) versions.unshift({ id: before.id, turn: before })
  const current = conversation.turns[place]
  const use = async (version) => {
    await conversation.switchTo(version.branch)
    onClose()
  }
  return html`<${Dialog} wide title=${t('compare.title')} onClose=${onClose}>
    ${without && html`<p class="muted">${t('compare.without', { text: without })} <a href="#/core">${t('compare.core')}</a></p>`}
    <blockquote tabindex="0" dir="auto">${current.message}</blockquote>
    <div class="columns">${versions.map((version, n) => {
      const isCurrent = version.id === current.id
      const name = before ? t(isCurrent ? 'compare.after' : 'compare.before') : t('compare.number', { n: n + 1 })
      return html`<section key=${version.id ?? 'new'} class="column" aria-label=${name}>
        <header><h3>${name}</h3>${isCurrent && html`<${Chip} kind="good">${t('compare.in_use')}<//>`}</header>
        <${Version} id=${version.id} turn=${isCurrent ? current : version.turn} />
        ${version.branch && html`<footer><${Button} kind="small" onClick=${() => use(version)}>${t('compare.use')}<//></footer>`}
      </section>`
    })}</div>
  <//>`
}

function Version({ id, turn }) {
  const found = useLoad(async () => turn ?? get(`/api/v1/turns/${id}`), [id, turn])
  const shown = turn ?? found.data
  const root = useRef()
  useEffect(() => {
    if (root.current) showMarkdown(root.current, shown.answer ?? '')
  }, [shown, shown?.status, shown?.answer])
  if (found.error) return html`<${Loaded} of=${found} />`
  if (!shown || isUnderWay(shown)) return html`<${Skeleton} rows=${3} />`
  return html`<div class="prose" dir="auto" ref=${root}></div>`
}

/** What the conversation never uses, each with the way back. */
export function NotUsedHere({ conversation, mayChange, onClose }) {
  const useAgain = async ({ id }) => {
    await remove(`/api/v1/conversations/${conversation.id}/exclusions/${id}`)
    await conversation.loadExcluded()
  }
  return html`<${Dialog} title=${t('exclusions.title')} onClose=${onClose}>
    <p class="muted">${t('exclusions.lead')}</p>
    ${!conversation.excluded.length && html`<${Empty} title=${t('exclusions.none')} />`}
    <ul class="recalled">${conversation.excluded.map((each) => html`<li class="item" key=${each.id}>
      <div dir="auto">${each.text ? html`<${Said} text=${each.text} />` : html`<em class="muted">${t('why.gone')}</em>`}</div>
      <div class="facts"><small class="muted"><${When} at=${each.created_at} /></small><span class="grow"></span>${mayChange && html`<${Button} kind="link" onClick=${() => useAgain(each)}>${t('exclusions.use_again')}<//>`}</div>
    </li>`)}</ul>
  <//>`
}

/** Never use a memory or a message in a conversation; `onChanged` runs then, and after it was undone. */
export async function neverUse(conversation, what, onChanged) {
  const path = `/api/v1/conversations/${conversation}/exclusions`
  const { id } = await post(path, { what })
  const undo = async () => {
    await remove(`${path}/${id}`)
    await onChanged()
  }
  toast(t('why.never_done'), { action: { label: t('undo'), run: undo } })
  await onChanged()
}
