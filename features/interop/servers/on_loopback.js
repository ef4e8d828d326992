// Loaded into Node before a third-party server: it makes the server listen on a free loopback port instead of the
// requested one, prints the address, and ends the server on SIGTERM.
import { Server } from 'node:net';

const { listen } = Server.prototype;

Server.prototype.listen = function (_, listening) {
  return listen.call(this, { port: 0, host: '127.0.0.1' }, () => {
    console.log(`serving http://127.0.0.1:${this.address().port}`);
    listening?.call(this);
  });
};
process.on('SIGTERM', () => process.exit(0));
