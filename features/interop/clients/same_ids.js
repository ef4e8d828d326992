// A fetch that gives every request the id 1 and the progress token 1, and gives the SDK its own back in the response.
export class SameIDs {
  resumed = 0; // streams
  #owners = new Map(); // the id of the request by the stream of its events
  #breaks = false;

  // breakNext breaks the next stream after its first notification of progress.
  breakNext() { this.#breaks = true; }

  fetch = async (url, init) => {
    const headers = new Headers(init?.headers), resumes = headers.get('last-event-id')?.split('_')[0];
    let id = this.#owners.get(resumes);
    this.resumed += id === undefined ? 0 : 1;
    if (init?.method === 'POST' && headers.get('content-type')?.includes('json')) {
      const message = JSON.parse(init.body);
      id = replace(message);
      init = { ...init, body: JSON.stringify(message) };
    }
    const response = await fetch(url, init);
    return id === undefined || !response.body ? response : new Response(response.body.pipeThrough(this.#restore(id)), response);
  };

  #restore(id) {
    const decoder = new TextDecoder(), encoder = new TextEncoder();
    let rest = '', breaks;
    return new TransformStream({
      transform: (chunk, controller) => {
        const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
        rest = lines.pop();
        for (const line of lines) {
          this.#note(line, id);
          controller.enqueue(encoder.encode(`${restored(line, id)}\n`));
          if (this.#breaks && line.includes('"notifications/progress"')) {
            this.#breaks = false;
            breaks = true;
          }
          if (breaks && line === '') {
            controller.terminate();
            return;
          }
        }
      },
      flush: (controller) => controller.enqueue(encoder.encode(restored(rest, id))),
    });
  }

  // note records the stream of an event.
  #note(line, id) {
    if (line.startsWith('id: ')) {
      this.#owners.set(line.slice(4).split('_')[0], id);
    }
  }
}

// replace changes a message, and returns the id of a request.
function replace(message) {
  if (message.method === 'notifications/cancelled') {
    message.params.requestId = 1;
  }
  if (!message.method || message.id === undefined) {
    return undefined;
  }
  const { id } = message;
  message.id = 1;
  if (message.params?._meta?.progressToken !== undefined) {
    message.params._meta.progressToken = 1;
  }
  return id;
}

// restored returns a line of a response with the id and the progress token of the SDK.
function restored(line, id) {
  const json = line.startsWith('data: {') ? line.slice(6) : line;
  if (!json.startsWith('{')) {
    return line;
  }
  const message = JSON.parse(json);
  if (!message.method && message.id === 1) {
    message.id = id;
  }
  if (message.method === 'notifications/progress' && message.params.progressToken === 1) {
    message.params.progressToken = id;
  }
  return line.slice(0, line.length - json.length) + JSON.stringify(message);
}
