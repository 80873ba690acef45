// Shows the controls that need JavaScript and hides the hints for pages without it: see base.css.
document.documentElement.dataset.scripted = '';
