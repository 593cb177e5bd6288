// The chosen theme, before the first picture: a script of its own, as the page's policy allows no inline one.
document.documentElement.dataset.theme = localStorage.getItem('anamnesis.theme') ?? 'system'
