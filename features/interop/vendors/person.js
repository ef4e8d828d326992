// The person who approves, in the browser's place: a client opens the page by a command that writes down the URL, or
// prints it.
import { mkdirSync, writeFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { approve } from '../browser.js';

const pattern = /https?:\/\/\S+\/oauth\/authorize\?\S+[^\s"')]/g;
const commands = ['xdg-open', 'sensible-browser', 'x-www-browser', 'www-browser', 'open'];

export class Person {
  visits = [];

  constructor(world) {
    this.world = world;
    this.opened = join(world.home, 'opened');
    this.bin = join(world.home, 'browser');
    mkdirSync(this.bin);
    writeFileSync(this.opened, '');
    for (const command of commands) {
      writeFileSync(join(this.bin, command), `#!/bin/sh\nprintf '%s\\n' "$@" >>'${this.opened}'\n`, { mode: 0o755 });
    }
  }

  get environment() {
    return { PATH: `${this.bin}${delimiter}${process.env.PATH}`, BROWSER: join(this.bin, commands[0]), DISPLAY: ':9' };
  }

  // look visits a page that was opened or printed since the last look.
  async look(printed) {
    const pages = `${await readFile(this.opened, 'utf8')}\n${printed}`.match(pattern) ?? [];
    const page = pages.findLast((url) => url.startsWith(this.world.issuer));
    const challenge = page && new URL(page).searchParams.get('code_challenge');
    if (page && !this.visits.some((visit) => visit.challenge === challenge)) {
      await fetch(await this.visit(new URL(page)));
    }
  }

  // visit approves and returns the callback. It pins the client's document, with the redirect URI that the client
  // sends, because nothing is fetched from the internet here.
  async visit(page) {
    const [id, redirect, challenge, scope] = ['client_id', 'redirect_uri', 'code_challenge', 'scope']
      .map((name) => page.searchParams.get(name));
    this.visits.push({ id, redirect, challenge, scope });
    if (!id.startsWith(this.world.issuer)) {
      await this.pin(id, redirect);
    }
    return approve(page, this.world.token);
  }

  async pin(id, redirect) {
    const document = {
      client_id: id,
      client_name: 'Pinned',
      redirect_uris: [redirect.replace(/:\d+/, '')],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    };
    await writeFile(join(this.world.documents, 'client.json'), JSON.stringify(document));
  }
}
