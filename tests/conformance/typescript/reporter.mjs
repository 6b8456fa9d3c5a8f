// Prints one line a test on stdout and the details of a failure on stderr.
export default async function* report(events) {
  for await (const { type, data } of events) {
    if (data.details?.type === 'suite' || data.nesting > 0 || data.skip) continue;
    if (type === 'test:pass') yield `ok - typescript: ${data.name}\n`;
    if (type === 'test:fail') {
      const error = data.details.error.cause ?? data.details.error;
      const reason = String(error.message ?? error)
        .split(/\s+/)
        .join(' ');
      console.error(error);
      yield `not ok - typescript: ${data.name}: ${reason}\n`;
    }
  }
}
