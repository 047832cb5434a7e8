import { binaryPath, startServer, type Server, type ServerOptions } from 'kubeproof';
import { useServer as ofJest } from 'kubeproof/jest';
import { useServer as ofVitest } from 'kubeproof/vitest';

const options: ServerOptions = { faults: ['lost-update'], load: ['crds.yaml'], timeout: 1 };
const path: string = binaryPath();
const both: (() => Server)[] = [ofJest(options), ofVitest()];
startServer(options).then(async (server: Server) => {
  const texts: string[] = [server.url, server.token, server.ca, server.caFile, server.kubeconfig];
  await server.stop();
  // @ts-expect-error The URL is read-only.
  server.url = path + texts.length + both.length;
});
// @ts-expect-error An unknown option is an error.
startServer({ fault: 'lost-update' });
