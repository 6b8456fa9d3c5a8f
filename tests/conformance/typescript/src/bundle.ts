// Bundles both deployments of the workflows once, so that workers start quickly.
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';

export type Deployment = 'current' | 'previous';

export function bundlePath(deployment: Deployment): string {
  return path.join(__dirname, `${deployment}.bundle.js`);
}

async function bundle(deployment: Deployment): Promise<void> {
  const { code } = await bundleWorkflowCode({
    workflowsPath: require.resolve(`./app/${deployment}`),
    logger: new DefaultLogger('ERROR'),
  });
  await writeFile(bundlePath(deployment), code);
}

if (require.main === module) {
  Promise.all([bundle('current'), bundle('previous')]).catch((error) => {
    console.error(error);
    process.exit(1);
  });
}
