import { command, type Invocation } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import { imageNameDefinition } from "../indexes/image-name.ts";
import { credentialsDefinition, registryOptions } from "../service/registry-definitions.ts";

export const verify = command({
  name: "verify",
  description:
    "Check who has signed an image of a registry: bundles of Sigstore attached to it, and signatures of cosign 1 and 2.",
  args: {
    reference: imageNameDefinition,
    identity: {
      type: "string",
      refusesEmpty: true,
      synonyms: ["--certificate-identity"],
      valueHint: "TEXT",
      description:
        "Whom the certificate must name: a workflow with its branch or tag, or an address, in whole",
    },
    "identity-regexp": {
      type: "string",
      refusesEmpty: true,
      synonyms: ["--certificate-identity-regexp"],
      valueHint: "REGEXP",
      description: "The same as a regular expression of Go, which may match anywhere: use ^ and $",
    },
    issuer: {
      type: "string",
      refusesEmpty: true,
      synonyms: ["--certificate-oidc-issuer"],
      valueHint: "URL",
      description: "Who must have vouched for the identity: https://token.actions.githubusercontent.com",
    },
    "issuer-regexp": {
      type: "string",
      refusesEmpty: true,
      synonyms: ["--certificate-oidc-issuer-regexp"],
      valueHint: "REGEXP",
      description: "The same as a regular expression",
    },
    key: {
      type: "string",
      refusesEmpty: true,
      completes: "file",
      valueHint: "FILE",
      description: "The public key, in PEM, that must have signed it; env://NAME is a variable with the key",
    },
    "trusted-root": {
      type: "string",
      refusesEmpty: true,
      completes: "file",
      valueHint: "FILE",
      description: "The authorities and logs to trust (default: those that Sigstore publishes, fetched)",
    },
    type: {
      type: "string",
      refusesEmpty: true,
      valueHint: "URL",
      description: "Check an attestation of this type in place of the signature, as one that GitHub attaches",
    },
    creds: credentialsDefinition,
    ...registryOptions,
  },
  run: verifyImage,
  examples: [
    [
      "verify registry.example/team/app:1.0 --issuer https://token.actions.githubusercontent.com --identity-regexp ^https://github\\.com/team/app/",
      "signed by a workflow of this repository",
    ],
    [
      "verify registry.example/team/app:1.0 --key cosign.pub",
      "signed by a key, without a network but the registry",
    ],
    ["verify -q registry.example/team/app:1.0 --key cosign.pub", "prints the digest that is signed"],
  ],
  agentNote:
    "Nothing is written to the registry. Exit code 1: the image is not signed by whom was asked for.",
});

async function verifyImage(invocation: Invocation): Promise<void> {
  const { checkSignatures } = await import("./check-signatures.ts");
  const { name, digest, signatures } = await checkSignatures(invocation);
  printResult(invocation, {
    id: digest,
    json: { reference: name, digest, signatures },
    table: () => ({
      header: ["SIGNED BY", "ISSUER", "SIGNED", "DIGEST"],
      rows: signatures.map(({ identity, issuer, signedAt }) => [
        { whole: identity ?? "the key" },
        issuer,
        signedAt,
        { whole: digest },
      ]),
    }),
  });
}
