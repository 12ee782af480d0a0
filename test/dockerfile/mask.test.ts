import { describe, expect, test } from "bun:test";
import { maskSecrets } from "../../src/dockerfile/secrets.ts";

const table: [text: string, shown: string][] = [
  ["RUN git clone https://me:p4ss@host/app", "RUN git clone https://***@host/app"],
  ["RUN git clone https://t0ken@host/app", "RUN git clone https://***@host/app"],
  ["RUN git clone https://me:p@4ss@host/app@2x", "RUN git clone https://***@host/app@2x"],
  ["ADD http://host/x?access_token=abc&n=1 /x", "ADD http://host/x?access_token=***&n=1 /x"],
  ["ADD https://host/x?X-Amz-Signature=abc /x", "ADD https://host/x?X-Amz-Signature=*** /x"],
  ["ENV API_TOKEN=abc MODE=fast", "ENV API_TOKEN=*** MODE=fast"],
  ['ENV API_TOKEN="a b \\" c" MODE=fast', "ENV API_TOKEN=*** MODE=fast"],
  ["ENV API_TOKEN='a b' MODE=fast", "ENV API_TOKEN=*** MODE=fast"],
  ["ENV API_TOKEN a b c", "ENV API_TOKEN ***"],
  ["ARG PASSWORD=abc", "ARG PASSWORD=***"],
  ["RUN TOKEN=abc; make SECRET=def && echo", "RUN TOKEN=***; make SECRET=*** && echo"],
  ['RUN echo "secret = abc" >> clients.conf', 'RUN echo "secret = ***" >> clients.conf'],
  ["RUN npm install --token=abc", "RUN npm install --token=***"],
];

test.each(table)("%s", (text, shown) => {
  expect(maskSecrets(text)).toBe(shown);
});

test.each([
  "ENV MODE=fast KEYBOARD=us PUBLIC_KEY=abc",
  "ENV API_TOKEN=$OTHER",
  'ENV API_TOKEN="${OTHER}"',
  "RUN GITHUB_TOKEN=$(cat /run/secrets/token) ./build.sh",
  "ENV key=value",
  "ENV API_TOKEN",
  "RUN curl https://host/path@2x.png user@host",
  "COPY --from=token a /x",
])("%s is shown unchanged", (text) => {
  expect(maskSecrets(text)).toBe(text);
});

test("a mask may have the length of the secret, so that columns stay the same", () => {
  const text = "ENV API_TOKEN=abc MODE=fast";
  expect(maskSecrets(text, (length) => "*".repeat(length))).toBe("ENV API_TOKEN=*** MODE=fast");
});

// In quadratic time it would be minutes.
describe("masking takes linear time for a line of many", () => {
  const size = 300_000;
  test.each([
    ["schemes", "a://".repeat(size)],
    ["at signs", `a://${"a@".repeat(size)}`],
    ["names", "TOKEN=".repeat(size)],
    ["quotes", 'TOKEN="'.repeat(size)],
    ["escapes", `TOKEN="${'\\"'.repeat(size)}`],
    ["spaces", `ENV TOKEN ${" ".repeat(size)}`],
    ["words", `${"A ".repeat(size)}`],
    ["letters", "a".repeat(size * 4)],
    ["question marks", "?a=".repeat(size)],
  ])("%s", (_, text) => {
    const started = process.cpuUsage();
    maskSecrets(text);
    const { user, system } = process.cpuUsage(started);
    expect(user + system).toBeLessThan(20_000_000);
  });
});
