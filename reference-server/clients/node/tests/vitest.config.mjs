export default { test: { include: ['server.test.mjs'] } };
