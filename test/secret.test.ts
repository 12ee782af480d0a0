import { expect, test } from "bun:test";
import { Secret } from "../src/secret.ts";

test("a secret is in no JSON, no text and no inspection of what holds it", () => {
  const secret = new Secret(new TextEncoder().encode("hunter2"));
  const holder = { mounts: [{ target: "/run/secrets/one", value: secret }] };
  expect(() => JSON.stringify(holder)).toThrow("can't be written as JSON");
  for (const shown of [`${secret}`, Bun.inspect(holder, { depth: 9 }), Object.values(secret).join()])
    expect(shown).not.toMatch(/hunter2|104,\s*117/);
  expect(() => structuredClone(secret).reveal()).toThrow();
  expect(new TextDecoder().decode(secret.reveal())).toBe("hunter2");
});
