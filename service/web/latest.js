// Questions that overtake each other: only the newest is asked, and its answer drawn.

/**
 * Returns a function that asks, one question at a time. While one is under way, only the
 * newest of the later ones waits.
 * @param {(question: any) => Promise<any>} ask
 * @param {(answer: any, question: any) => void} draw
 * @param {(error: Error) => void} fail
 */
export function newestOnly(ask, draw, fail) {
  let waiting = null;
  let busy = false;

  async function run() {
    busy = true;
    while (waiting) {
      const { question } = waiting;
      waiting = null;
      try {
        const answer = await ask(question);
        draw(answer, question);
      } catch (error) {
        if (error.name !== "AbortError") fail(error);
      }
    }
    busy = false;
  }

  return (question) => {
    waiting = { question };
    if (!busy) run();
  };
}
