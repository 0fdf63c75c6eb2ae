// An app that @slack/bolt runs against the emulator. It says on its output what
// it understood, one JSON object a line; the first line has the port.
//
//   node bolt.mjs <directory of @slack/bolt> <http|socket>
//
// Tokens, secret and address come from the environment.

import { createRequire } from 'node:module';
import { join } from 'node:path';

const [, , directory, transport] = process.argv;
const require = createRequire(join(directory, 'package.json'));
const { App, HTTPReceiver, LogLevel } = require(directory);

const env = process.env;
const say = (what) => process.stdout.write(`${JSON.stringify(what)}\n`);
const shared = {
  token: env.BOLT_TOKEN,
  clientOptions: { slackApiUrl: env.BOLT_API_URL, retryConfig: { retries: 0 } },
  logLevel: LogLevel.ERROR,
};

let receiver;
let app;
if (transport === 'socket') {
  app = new App({ ...shared, socketMode: true, appToken: env.BOLT_APP_TOKEN });
} else {
  receiver = new HTTPReceiver({
    signingSecret: env.BOLT_SIGNING_SECRET,
    endpoints: ['/events', '/commands', '/interactions'],
    logLevel: LogLevel.ERROR,
  });
  app = new App({ ...shared, receiver });
}

app.event('app_mention', async ({ event, say: post }) => {
  say({ kind: 'mention', user: event.user, text: event.text });
  await post({
    thread_ts: event.ts,
    text: 'Shall I?',
    blocks: [
      { type: 'markdown', text: '**Shall I?**' },
      { type: 'actions', elements: [{ type: 'button', action_id: 'yes', value: 'v-1', text: { type: 'plain_text', text: 'Yes' } }] },
    ],
  });
});

app.command('/agent', async ({ command, ack, client }) => {
  await ack('one moment');
  say({ kind: 'command', user: command.user_id, text: command.text });
  await client.views.open({
    trigger_id: command.trigger_id,
    view: {
      type: 'modal',
      callback_id: 'form',
      title: { type: 'plain_text', text: 'A form' },
      submit: { type: 'plain_text', text: 'Send' },
      blocks: [{ type: 'input', block_id: 'b', label: { type: 'plain_text', text: 'Why?' }, element: { type: 'plain_text_input', action_id: 'a' } }],
    },
  });
});

app.action('yes', async ({ action, body, ack, client }) => {
  await ack();
  say({ kind: 'action', user: body.user.id, text: action.value });
  const at = { channel: body.channel.id, thread_ts: body.message.thread_ts };
  const stream = client.chatStream({ ...at, recipient_user_id: body.user.id, recipient_team_id: body.team.id, buffer_size: 1 });
  await stream.append({ markdown_text: 'It **was' });
  await stream.append({ markdown_text: ' done**.' });
  await stream.stop();
});

app.view('form', async ({ view, body, ack }) => {
  await ack();
  say({ kind: 'view', user: body.user.id, text: view.state.values.b.a.value });
});

app.error(async (error) => say({ kind: 'error', text: String(error) }));

await app.start(0);
say({ kind: 'ready', port: receiver ? receiver.server.address().port : 0 });
process.stdin.on('end', () => process.exit(0)).resume(); // ends with the test
