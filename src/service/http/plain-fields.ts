import type { Answer } from "./answer.ts";
import { StatusError } from "./errors.ts";

/** Sends requests without their optional fields to a service that refuses fields which it does not know. */
export interface PlainFields {
  /** Sends `json`, and without the `optional` fields if it is refused as it is: then all later requests of this path, too. */
  send<T extends object>(
    path: string,
    json: T,
    optional: readonly (keyof T)[],
    post: (json: T) => Promise<Answer>,
  ): Promise<Answer>;
}

export function createPlainFields(onPlain: (text: string) => void): PlainFields {
  const plainPaths = new Set<string>();
  return {
    async send(path, json, optional, post) {
      const present = optional.filter((name) => json[name] !== undefined);
      const plain = { ...json };
      for (const name of present) delete plain[name];
      if (present.length === 0 || plainPaths.has(path)) return post(plain);
      try {
        return await post(json);
      } catch (error) {
        if (!(error instanceof StatusError) || ![400, 422].includes(error.status)) throw error;
        const answer = await post(plain).catch((again: unknown) => {
          throw again instanceof StatusError ? error : again;
        });
        plainPaths.add(path);
        onPlain(`${error.message}; sent without ${present.join(", ")}, from now on`);
        return answer;
      }
    },
  };
}
