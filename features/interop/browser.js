// A simulated browser of the person who approves.

// approve opens the authorization URL, pastes the site's token into the form, approves, and returns the URL of the client's
// callback that the site sends the browser to. A list has one value for each field of the form.
export async function approve(authorizationURL, token) {
  const page = await fetch(authorizationURL, { redirect: 'manual' });
  const text = await page.text();
  const action = /<form method="post" action="([^"]*)"/.exec(text);
  const ticket = /name="ticket" value="([^"]*)"/.exec(text);
  if (page.status !== 200 || !action || !ticket) {
    throw new Error(`opening the consent page: ${page.status}\n${text}`);
  }
  const target = unescapeHTML(action[1]);
  const answer = await fetch(target, {
    method: 'POST',
    redirect: 'manual',
    headers: { Origin: new URL(target).origin },
    body: new URLSearchParams({ ticket: unescapeHTML(ticket[1]), ...filledIn(text, [token].flat()), decision: 'approve' }),
  });
  if (answer.status !== 303) {
    throw new Error(`approving: ${answer.status}\n${await answer.text()}`);
  }
  return new URL(answer.headers.get('Location'));
}

// filledIn returns the values by the names of the fields.
function filledIn(page, values) {
  const names = [...page.matchAll(/<input [^>]*>/g)].filter(([input]) => !/type="(hidden|submit|checkbox|radio)"/.test(input)).map(([input]) => /name="([^"]*)"/.exec(input)[1]);
  if (names.length !== values.length) {
    throw new Error(`the consent page has the fields ${names}, not ${values.length}`);
  }
  return Object.fromEntries(names.map((name, i) => [name, values[i]]));
}

const entities = { '&amp;': '&', '&#43;': '+', '&#34;': '"', '&#39;': "'", '&lt;': '<', '&gt;': '>' };

function unescapeHTML(text) {
  return text.replace(/&(?:amp|lt|gt|#34|#39|#43);/g, (entity) => entities[entity]);
}
