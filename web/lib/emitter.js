/** A typed-event source without the ceremony of EventTarget. */

export class Emitter {
  #handlers = new Map();

  /**
   * Call `handler` at each `name` event.
   * @param {string} name
   * @param {(detail: any) => void} handler
   * @returns {() => void} takes the handler off again
   */
  on(name, handler) {
    const handlers = this.#handlers.get(name) ?? new Set();
    this.#handlers.set(name, handlers.add(handler));
    return () => handlers.delete(handler);
  }

  /** The next `name` event's detail. */
  once(name) {
    return new Promise((resolve) => {
      const off = this.on(name, (detail) => {
        off();
        resolve(detail);
      });
    });
  }

  /** Tell all handlers; one that throws is reported and does not stop the others. */
  emit(name, detail) {
    for (const handler of [...(this.#handlers.get(name) ?? [])]) {
      try {
        handler(detail);
      } catch (error) {
        console.error(`sluice: handler of ${name} failed`, error);
      }
    }
  }
}
