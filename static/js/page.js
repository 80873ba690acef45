// Controls that need a script are shown once there is one, and advice for want of
// one goes: see base.css.
document.documentElement.dataset.scripted = '';
