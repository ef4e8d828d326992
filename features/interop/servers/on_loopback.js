// Loaded into Node before a server of other people: whatever port it asks for, it listens on one of this computer's own that the
// system chooses, says so, and ends on SIGTERM as our own servers do.
import { Server } from 'node:net';

const { listen } = Server.prototype;

Server.prototype.listen = function (_, listening) {
  return listen.call(this, { port: 0, host: '127.0.0.1' }, () => {
    console.log(`serving http://127.0.0.1:${this.address().port}`);
    listening?.call(this);
  });
};
process.on('SIGTERM', () => process.exit(0));
