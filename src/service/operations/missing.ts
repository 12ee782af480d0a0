/**
 * True if a service's message says that an image or a file of a request does not exist. Servers respond with 404 or 410. Some use
 * another refusal with such a message, or an operation that could not be run.
 */
export function meansMissing(message: string): boolean {
  return missing.test(message);
}

const missing =
  /\b(no such|unknown|missing) (image|file)\b|\b(image|file)s?\b[^.]{0,100}\b(not found|not exist|doesn't exist|no longer|deleted|expired)\b/i;
