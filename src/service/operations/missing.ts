/**
 * Returns whether a service says that an image or a file which a request names is not there. Servers answer 404 or 410; some say
 * it in the words of another refusal, or of an operation that could not be run.
 */
export function meansMissing(message: string): boolean {
  return missing.test(message);
}

const missing =
  /\b(no such|unknown|missing) (image|file)\b|\b(image|file)s?\b[^.]{0,100}\b(not found|not exist|doesn't exist|no longer|deleted|expired)\b/i;
