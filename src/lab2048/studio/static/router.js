// Which view is shown, and at which address.

import { el, fill } from "./dom.js";
import { confirmed, fail, say, withdrawQuestion } from "./messages.js";

const DELAY = 300; // milliseconds: browsers limit how often the address may change

const addressNow = () => location.pathname + location.search + location.hash;
const wanted = () => [new URLSearchParams(location.search), location.hash.slice(1)];

export class Router {
  #loaded = {}; // the modules of views shown so far, which need no loading
  #last = {}; // the last address of each view
  #current = null; // what is shown: { name, view, keys }
  #turn = 0; // counts requests to show a view: only the last one is carried out
  #writing = 0; // the timer of an address that is still to be written

  // The views are those that the menu links to.
  constructor(main, links) {
    Object.assign(this, { main, links });
    this.views = links.map((link) => link.dataset.view);
    this.titles = links.map((link) => link.textContent);
  }

  // The name of the view that is shown, and its keys.
  get name() {
    return this.#current?.name;
  }
  get keys() {
    return this.#current?.keys ?? [];
  }

  start() {
    addEventListener("popstate", () => {
      withdrawQuestion();
      this.#stopWriting();
      this.#show();
    });
    addEventListener("pagehide", () => this.#settle());
    if (location.pathname !== "/" && !this.views.includes(location.pathname.slice(1))) {
      fail(`there is no page ${location.pathname}; this is ${this.titles[0]}`);
      history.replaceState(null, "", `/${this.views[0]}`);
    }
    this.#show();
  }

  // Pass a key to the current view; returns whether it was used. A view that is loading uses none.
  press(event) {
    const isThere = this.name === this.#named();
    return Boolean(isThere && this.#current.view?.key?.(event));
  }

  // -- going elsewhere ------------------------------------------------------------------------

  // Go to an address; returns whether that was done. If something in the view of that address is
  // unfinished, the user has to confirm.
  async go(url) {
    const name = this.#named(new URL(url, location.href));
    const left = this.#last[name];
    const lost = left && left !== url ? this.#loaded[name]?.unfinished?.(left) : null;
    if (lost && !(await confirmed(lost))) return false;
    this.#settle();
    history.pushState(null, "", url);
    this.#show();
    return true;
  }

  // Go to a view as it was left; from the view itself, to its start.
  goBackTo(name) {
    this.go(name === this.name ? `/${name}` : (this.#last[name] ?? `/${name}`));
  }

  #named({ pathname } = location) {
    const name = pathname.slice(1);
    return this.views.includes(name) ? name : this.views[0];
  }

  // -- the address ----------------------------------------------------------------------------

  // Change the address of the current view; changes in quick succession are written once.
  #setAddress(url, { push = false } = {}) {
    const before = this.#last[this.name];
    if (push && url !== before) {
      this.#write(before);
      history.pushState(null, "", url);
    } else this.#writing ||= setTimeout(() => this.#settle(), DELAY);
    this.#last[this.name] = url;
  }

  #write(url) {
    this.#stopWriting();
    if (url !== addressNow()) history.replaceState(null, "", url);
  }

  // Write the address of the current view now, if it is still to be written.
  #settle() {
    if (this.#current) this.#write(this.#last[this.name]);
  }

  #stopWriting() {
    clearTimeout(this.#writing);
    this.#writing = 0;
  }

  // -- showing --------------------------------------------------------------------------------

  // Show the view of the address.
  async #show() {
    const mine = ++this.#turn;
    const name = this.#named();
    if (this.name === name && this.#current.view.arrive) {
      this.#current.view.arrive(...wanted()); // the same view at another address
      return;
    }
    try {
      this.#loaded[name] ??= await import(`./views/${name}.js`);
    } catch {
      fail("the studio does not answer; is it still running?");
      if (mine === this.#turn) this.#settle();
      return;
    }
    if (mine === this.#turn) this.#open(name, this.#loaded[name]);
  }

  #open(name, module) {
    this.#current?.view.leave?.();
    const shown = { name, keys: module.KEYS, view: null };
    this.#current = shown;
    this.#last[name] = addressNow();
    for (const link of this.links) {
      if (link.dataset.view === name) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    document.title = `${module.TITLE} – lab2048`;
    const root = el("div", { class: `view ${name}` });
    fill(this.main, root);
    shown.view = module.open(root, ...wanted(), this.#pageFor(shown));
  }

  // What a view may do with the page. Once another is shown, it can no longer change the address.
  #pageFor(shown) {
    return {
      say,
      fail,
      tell: fail,
      go: async (url) => this.#current === shown && this.go(url),
      setAddress: (url, how) => {
        if (this.#current === shown) this.#setAddress(url, how);
      },
    };
  }
}
