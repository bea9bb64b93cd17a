package sparkrowtime.support;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Calls of classes that are not there without the jar of a table format, so none of this library's classes names them. */
public final class ByName {
  private static final Map<Called, Method> FOUND = new ConcurrentHashMap<>();

  /** A call, as far as it decides which method is meant. */
  private record Called(Class<?> on, String name, List<Class<?>> arguments) {}

  private ByName() {}

  /**
   * The result of a public method. What it throws, this throws.
   *
   * @param arguments of which none is null, and whose classes are those of the parameters
   */
  public static Object call(Object on, String name, Object... arguments) {
    List<Class<?>> classes = Arrays.stream(arguments).<Class<?>>map(Object::getClass).toList();
    return invoked(FOUND.computeIfAbsent(new Called(on.getClass(), name, classes), ByName::method), on, arguments);
  }

  private static Method method(Called called) {
    return Arrays.stream(called.on().getMethods())
        .filter(m -> m.getName().equals(called.name()) && takes(m.getParameterTypes(), called.arguments()))
        .findFirst()
        .orElseThrow(() -> new ShimMismatch("a method " + called.name() + " of " + called.on(), null));
  }

  /** Whether an object is of a class, or of one that is derived from it. */
  public static boolean is(Object object, String className) {
    for (Class<?> c = object == null ? null : object.getClass(); c != null; c = c.getSuperclass()) {
      if (c.getName().equals(className)) {
        return true;
      }
    }
    return false;
  }

  private static boolean takes(Class<?>[] parameters, List<Class<?>> arguments) {
    if (parameters.length != arguments.size()) {
      return false;
    }
    for (int i = 0; i < parameters.length; i++) {
      Class<?> wanted = parameters[i] == long.class ? Long.class : parameters[i] == int.class ? Integer.class : parameters[i];
      if (!wanted.isAssignableFrom(arguments.get(i))) {
        return false;
      }
    }
    return true;
  }

  /** A static method. What it throws, this throws. */
  public static Object callStatic(Method method, Object... arguments) {
    return invoked(method, null, arguments);
  }

  /** A public method of a class that is not public is called all the same. */
  private static Object invoked(Method method, Object on, Object... arguments) {
    try {
      method.setAccessible(true);
      return method.invoke(on, arguments);
    } catch (InvocationTargetException e) {
      if (e.getCause() instanceof RuntimeException cause) {
        throw cause;
      }
      throw new IllegalStateException(e.getCause());
    } catch (ReflectiveOperationException e) {
      throw new ShimMismatch("to be able to call " + method, e);
    }
  }
}
