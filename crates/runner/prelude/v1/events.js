// Event, EventTarget, AbortController and AbortSignal. There is no tree: an event meets the listeners of one target.
(function (kit) {
  "use strict";

  const { apply, clock, create, define, freeze, views } = kit;
  const { iterator, toStringTag } = kit.symbols;
  const { self: NativeTypeError } = kit.TypeError;
  const { self: NativeDOMException } = kit.DOMException;
  const { self: NativeSet, add: setAdd, forEach: setForEach } = kit.Set;
  const { crashed, isObject } = kit.load("errors");

  const LISTENERS_MAX = 10000; // of one target

  // ---- Events ----

  class Event {
    #type = "";
    #bubbles = false;
    #cancelable = false;
    #prevented = false;
    #stopped = false;
    #dispatched = false;
    #target = null;
    #at = clock.now - clock.startedAt;
    constructor(type, options = undefined) {
      if (arguments.length === 0) throw new NativeTypeError("an Event needs a type");
      this.#type = "" + type;
      if (options !== undefined && options !== null) {
        this.#bubbles = !!options.bubbles;
        this.#cancelable = !!options.cancelable;
      }
    }
    get type() { return this.#type; }
    get bubbles() { return this.#bubbles; }
    get cancelable() { return this.#cancelable; }
    get composed() { return this.#type && false; }
    get defaultPrevented() { return this.#prevented; }
    get target() { return this.#target; }
    get currentTarget() { return this.#dispatched ? this.#target : null; }
    get srcElement() { return this.#target; }
    get eventPhase() { return this.#dispatched ? 2 : 0; }
    get timeStamp() { return this.#at; }
    get isTrusted() { return this.#type && false; }
    preventDefault() {
      if (this.#cancelable) this.#prevented = true;
    }
    stopPropagation() {}
    stopImmediatePropagation() {
      this.#stopped = true;
    }
    composedPath() {
      return this.#dispatched ? [this.#target] : [];
    }
    // What a target needs; taken away below, before the guest sees the class.
    static begin(event, target) {
      if (!isObject(event) || !(#type in event)) throw new NativeTypeError("dispatchEvent needs an Event");
      if (event.#dispatched) throw new NativeDOMException("the event is already being dispatched", "InvalidStateError");
      event.#dispatched = true;
      event.#target = target;
    }
    static end(event) {
      event.#dispatched = false;
      event.#stopped = false;
      return !event.#prevented;
    }
    static isStopped(event) { return event.#stopped; }
    static typeOf(event) { return event.#type; }
    static view(object) {
      return #type in object ? { __proto__: null, name: "Event", value: { __proto__: null, type: object.#type } } : undefined;
    }
  }
  const { begin, end, isStopped, typeOf, view: viewEvent } = Event;
  delete Event.begin;
  delete Event.end;
  delete Event.isStopped;
  delete Event.typeOf;
  delete Event.view;

  class CustomEvent extends Event {
    #detail = null;
    constructor(type, options = undefined) {
      super(type, options);
      if (options !== undefined && options !== null && options.detail !== undefined) this.#detail = options.detail;
    }
    get detail() { return this.#detail; }
  }

  // ---- Targets ----

  // A listener may be added and removed while others run: what was there at the start is asked whether it still is.
  const listenersOf = () => ({ __proto__: null, list: create(null), n: 0 });
  const sameListener = (one, type, callback, capture) =>
    !one.removed && one.type === type && one.callback === callback && one.capture === capture;
  const addListener = (listeners, type, callback, options) => {
    const flags = isObject(options) ? options : { __proto__: null, capture: options };
    const capture = !!flags.capture, once = !!flags.once, { signal } = flags;
    if (signal !== undefined && signalOf(signal).aborted) return;
    if (callback === null || callback === undefined) return;
    for (let at = 0; at < listeners.n; at += 1) if (sameListener(listeners.list[at], type, callback, capture)) return;
    if (listeners.n >= LISTENERS_MAX) throw new NativeTypeError("a target has too many listeners");
    listeners.list[listeners.n] = { __proto__: null, type, callback, capture, once, removed: false };
    listeners.n += 1;
    if (signal !== undefined) whenAborted(signalOf(signal), () => removeListener(listeners, type, callback, capture));
  };
  const removeListener = (listeners, type, callback, capture) => {
    let kept = 0;
    const { list, n } = listeners;
    const left = create(null);
    for (let at = 0; at < n; at += 1) {
      if (sameListener(list[at], type, callback, capture)) list[at].removed = true;
      else {
        left[kept] = list[at];
        kept += 1;
      }
    }
    listeners.list = left;
    listeners.n = kept;
  };
  const call = (callback, target, event) => {
    try {
      if (typeof callback === "function") apply(callback, target, [event]);
      else callback.handleEvent(event);
    } catch (error) {
      crashed(error);
    }
  };
  const dispatch = (target, listeners, event) => {
    begin(event, target);
    const { list, n } = listeners;
    const type = typeOf(event);
    for (let at = 0; at < n && !isStopped(event); at += 1) {
      const one = list[at];
      if (one.removed || one.type !== type) continue;
      if (one.once) removeListener(listeners, type, one.callback, one.capture);
      call(one.callback, target, event);
    }
    return end(event);
  };

  class EventTarget {
    #listeners = listenersOf();
    addEventListener(type, callback, options = undefined) {
      if (callback !== null && callback !== undefined && !isObject(callback)) {
        throw new NativeTypeError("a listener is a function or an object with handleEvent");
      }
      addListener(this.#listeners, "" + type, callback, options);
    }
    removeEventListener(type, callback, options = undefined) {
      const capture = isObject(options) ? options.capture : options;
      removeListener(this.#listeners, "" + type, callback, !!capture);
    }
    dispatchEvent(event) {
      return dispatch(this, this.#listeners, event);
    }
    static fire(target, event) {
      dispatch(target, target.#listeners, event);
    }
  }
  const { fire } = EventTarget;
  delete EventTarget.fire;

  // ---- Abort ----

  const KEY = create(null); // who holds it may construct signals

  const abortError = () => new NativeDOMException("This operation was aborted", "AbortError");

  // Told before the listeners are: the signals that depend on this one, and the listeners it removes.
  const whenAborted = (state, run) => setAdd(state.followers, run);
  const abort = (state, reason) => {
    if (state.aborted) return;
    state.aborted = true;
    state.reason = reason === undefined ? abortError() : reason;
    const { followers } = state;
    state.followers = new NativeSet();
    setForEach(followers, (run) => run());
    const event = new Event("abort");
    if (typeof state.onabort === "function") call(state.onabort, state.signal, event);
    fire(state.signal, event);
  };

  class AbortSignal extends EventTarget {
    #state;
    constructor(key) {
      if (key !== KEY) throw new NativeTypeError("an AbortSignal comes from an AbortController");
      super();
      this.#state = { __proto__: null, signal: this, aborted: false, reason: undefined, onabort: null, followers: new NativeSet() };
    }
    get aborted() { return this.#state.aborted; }
    get reason() { return this.#state.reason; }
    get onabort() { return this.#state.onabort; }
    set onabort(run) {
      this.#state.onabort = isObject(run) ? run : null;
    }
    throwIfAborted() {
      if (this.#state.aborted) throw this.#state.reason;
    }
    static abort(reason = undefined) {
      const signal = new AbortSignal(KEY);
      abort(stateOf(signal), reason);
      return signal;
    }
    static timeout(ms) {
      const signal = new AbortSignal(KEY);
      const late = () => abort(stateOf(signal), new NativeDOMException("The operation was aborted due to timeout", "TimeoutError"));
      kit.load("timers").setTimeout(late, ms);
      return signal;
    }
    static any(signals) {
      const signal = new AbortSignal(KEY);
      const state = stateOf(signal);
      const all = signals[iterator]();
      for (let next = all.next(); !next.done; next = all.next()) {
        const source = signalOf(next.value);
        if (source.aborted) abort(state, source.reason);
        else whenAborted(source, () => abort(state, source.reason));
      }
      return signal;
    }
    static stateOf(object) {
      return isObject(object) && #state in object ? object.#state : undefined;
    }
  }
  const { stateOf } = AbortSignal;
  delete AbortSignal.stateOf;
  const signalOf = (object) => {
    const state = stateOf(object);
    if (state === undefined) throw new NativeTypeError("an AbortSignal is needed");
    return state;
  };

  class AbortController {
    #signal = new AbortSignal(KEY);
    get signal() { return this.#signal; }
    abort(reason = undefined) {
      abort(stateOf(this.#signal), reason);
    }
    static view(object) {
      return #signal in object ? { __proto__: null, name: "AbortController", value: { __proto__: null, signal: object.#signal } } : undefined;
    }
  }
  const { view: viewController } = AbortController;
  delete AbortController.view;

  const classes = { __proto__: null, Event, CustomEvent, EventTarget, AbortController, AbortSignal };
  const names = kit.ownKeys(classes);
  for (let at = 0; at < names.length; at += 1) define(classes[names[at]].prototype, toStringTag, names[at]);
  views[kit.nViews] = (object) => {
    const state = stateOf(object);
    if (state === undefined) return viewController(object) || viewEvent(object);
    return { __proto__: null, name: "AbortSignal", value: { __proto__: null, aborted: state.aborted } };
  };
  kit.nViews += 1;
  return freeze(classes);
})
