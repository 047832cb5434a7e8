import { CoreV1Api, KubeConfig } from '@kubernetes/client-node';
import { useServer } from 'kubeproof/vitest';
import { expect, test } from 'vitest';

const server = useServer();

test('the server has the namespaces of a new cluster', async () => {
  const config = new KubeConfig();
  config.loadFromFile(server().kubeconfig);
  const list = await config.makeApiClient(CoreV1Api).listNamespace();
  expect(list.items.map((item) => item.metadata.name)).toContain('kube-system');
});
