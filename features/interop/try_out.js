// Runs the steps of one client.

const usualLimit = 20_000; // ms for each client

// tryOut runs the steps until one fails, and returns the client, the table's text for each step, and the failure.
export async function tryOut(who, run, limit = usualLimit) {
  const outcome = { who, done: {} };
  const step = async (name, act) => {
    const note = await act();
    outcome.done[name] = note ? `ok (${note})` : 'ok';
  };
  step.without = (name, why) => { outcome.done[name] = why; };
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done after ${limit} ms`)), limit);
  });
  try {
    await Promise.race([run(step), late]);
  } catch (error) {
    outcome.error = error;
  }
  clearTimeout(timer);
  return outcome;
}
