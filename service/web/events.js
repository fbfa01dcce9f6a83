// The event stream of a job, which survives lost connections.

const PAUSE = 2000;

/**
 * Follows a job until it ends or the signal aborts.
 * @param {string} id
 * @param {(type: string, data: Object) => void} onEvent
 * @param {(connected: boolean) => void} onConnection
 * @param {AbortSignal} signal
 */
export function followJob(id, onEvent, onConnection, signal) {
  let last = 0;
  let source = null;
  let timer = 0;

  function connect() {
    source = new EventSource(`v1/jobs/${encodeURIComponent(id)}/events?after=${last}`);
    source.onopen = () => onConnection(true);
    source.addEventListener("state", receive);
    source.addEventListener("epoch", receive);
    source.onerror = () => {
      onConnection(false);
      // A browser reconnects by itself, unless the answer was an error or 204.
      if (source.readyState !== EventSource.CLOSED) return;
      timer = setTimeout(connect, PAUSE);
    };
  }

  function receive(event) {
    const data = JSON.parse(event.data);
    last = Number(event.lastEventId);
    onEvent(event.type, data);
    if (event.type === "state" && ENDED.includes(data.state)) source.close();
  }

  connect();
  signal.addEventListener("abort", () => {
    clearTimeout(timer);
    source.close();
  });
}

export const ENDED = ["succeeded", "failed", "cancelled"];
